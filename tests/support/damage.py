"""Valid models, and ways to damage them, for tests and fuzz targets of the converter.

All random choices come from an object with the methods of `random.Random`.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from litebnn.flatbuffer import read_model, write_model
from litebnn.graph import NUMPY_TYPES, Buffer, Graph, Op, Tensor
from tests.support.float_models import FloatModel, sign_weights

GOLDEN = sorted((Path(__file__).resolve().parents[1] / "golden").glob("*.float.tflite"))


def _hidden_forms() -> list[bytes]:
    """Models with ops that the golden models lack."""
    rng = np.random.default_rng(0)
    kernel = sign_weights(rng, 8, 3, 3, 32)
    sources = []
    for pad, stride in ((None, 2), (1.0, 2), (-1.0, 1)):
        model = FloatModel()
        x = model.pad(model.sign(model.input(1, 8, 8, 32), "where_channels"), [(1, 1), (1, 1)], pad)
        sources.append(model.finish(model.conv(x, kernel, stride=(stride, stride), activation="relu")))
    model = FloatModel()
    x = model.max_pool(model.two_values(model.input(1, 8, 8, 32)), 2, 2)
    y = model.conv(x, model.sign(model.elementwise("RELU_N1_TO_1", model.const(kernel))), same=True)
    sources.append(model.finish(model.dense(model.two_values(model.reshape(y, 1, 128)), sign_weights(rng, 4, 128))))
    model = FloatModel()
    x = model.space_to_batch(model.pad(model.sign(model.input(1, 10, 32)), [(4, 0)]), [2], [(0, 0)])
    y = model.conv(model.expand(x, 1), sign_weights(rng, 8, 1, 3, 32))
    y = model.batch_to_space(model.reshape(y, 2, 5, 8), [2], [(0, 0)])
    condition = model.elementwise("GREATER", model.input(1, 1, 8), model.const(0), type="BOOL")
    z = model.op("SELECT_V2", [condition, model.const(1), model.const(-np.ones((1, 10, 8)))], (1, 10, 8))
    sources.append(model.finish(y, z))
    model = FloatModel()
    y = model.transposed_conv(model.sign(model.input(1, 5, 5, 32)), kernel)
    y = model.elementwise("MUL", y, model.const(np.arange(1, 9)))
    sources.append(model.finish(model.conv(model.sign(y), sign_weights(rng, 4, 1, 1, 8))))
    return sources


def _moving_ops() -> bytes:
    """A model of ops that move values. With damaged operands, the ops would read or write out of bounds."""
    rng = np.random.default_rng(1)
    model = FloatModel()
    x = model.sign(model.input(1, 32, 8, 8))
    x = model.op("TRANSPOSE", [x, model.const([0, 2, 3, 1], np.int32)], (1, 8, 8, 32))
    y = model.conv(x, sign_weights(rng, 8, 3, 3, 32))
    y = model.op("TRANSPOSE", [y, model.const([0, 3, 1, 2], np.int32)], (1, 8, 6, 6))
    begin, end, strides = (model.const(numbers, np.int32) for numbers in ([0, 1, 0, 0], [1, 5, 6, 6], [1, 2, 1, 1]))
    masks = dict.fromkeys(("begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask"), 0)
    y = model.op("STRIDED_SLICE", [y, begin, end, strides], (1, 2, 6, 6), offset=False, **masks)
    part = [model.const([0, 0, 1, 1], np.int32), model.const([1, 2, 4, -1], np.int32)]
    y = model.op("SLICE", [y, *part], (1, 2, 4, 5), table="SliceOptions")
    places = model.const([1, 0, 1], np.int32)
    y = model.op("GATHER", [y, places], (1, 3, 4, 5), table="GatherOptions", axis=1, batch_dims=0)
    y = model.op("CONCATENATION", [y, y], (1, 6, 4, 5), axis=1, fused_activation_function=0)
    y = model.op("SUM", [y, model.const([2, 3], np.int32)], (1, 6), keep_dims=False)
    y = model.op("TILE", [y, model.const([1, 2], np.int32)], (1, 12))
    return model.finish(
        model.op("ARG_MAX", [y, model.const(1, np.int32)], (1,), type="INT64", table="ArgMaxOptions", output_type=4)
    )


SOURCES = [*(path.read_bytes() for path in GOLDEN), *_hidden_forms(), _moving_ops()]


def _type(rng: Any, graph: Graph, op: Op, tensor: Tensor) -> None:
    tensor.type = rng.choice([*NUMPY_TYPES, "STRING", "INT4", "RESOURCE"])


def _size(rng: Any, graph: Graph, op: Op, tensor: Tensor) -> None:
    sizes = [0, 1, 3, 32, 64, 2**31 - 1, -1]
    tensor.shape = tuple(rng.choice(sizes) if rng.random() < 0.4 else size for size in tensor.shape)


def _rank(rng: Any, graph: Graph, op: Op, tensor: Tensor) -> None:
    shape = tensor.shape
    tensor.shape = rng.choice([shape[1:], (*shape, 1), (), (1, *shape), shape[::-1], (int(np.prod(shape)),)])


def _unknown(rng: Any, graph: Graph, op: Op, tensor: Tensor) -> None:
    tensor.shape_signature = tuple(rng.choice([-1, size]) for size in tensor.shape) or None


def _arity(rng: Any, graph: Graph, op: Op, tensor: Tensor) -> None:
    if rng.random() < 0.5 and op.inputs:
        op.inputs.pop(rng.randrange(len(op.inputs)))
    else:
        op.inputs.append(tensor)


def _input(rng: Any, graph: Graph, op: Op, tensor: Tensor) -> None:
    tensors = [t for other in graph.ops for t in (*other.inputs, *other.outputs)]
    if op.inputs:
        op.inputs[rng.randrange(len(op.inputs))] = rng.choice([*tensors, None])


def _option(rng: Any, graph: Graph, op: Op, tensor: Tensor) -> None:
    numbers = [key for key, value in vars(op.options).items() if type(value) is int]
    if numbers:
        setattr(op.options, rng.choice(numbers), rng.choice([0, 1, 2, 3, 7, -1, 100]))


def _value(rng: Any, graph: Graph, op: Op, tensor: Tensor) -> None:
    if tensor.is_constant:
        data = np.array(tensor.buffer.data)
        data[rng.randrange(data.size)] = rng.randrange(256)
        tensor.buffer = Buffer(data if rng.random() < 0.8 else None)


def _kind(rng: Any, graph: Graph, op: Op, tensor: Tensor) -> None:
    other = rng.choice(graph.ops)
    op.code = other.code
    op.options = other.options if rng.random() < 0.7 else op.options


DAMAGES: list[Callable[[Any, Graph, Op, Tensor], None]] = [
    _type, _size, _rank, _unknown, _arity, _input, _option, _value, _kind,
]  # fmt: skip


def damaged(
    rng: Any, sources: Sequence[bytes] = SOURCES, times: Sequence[int] = (1, 1, 2, 3, 5)
) -> tuple[bytes, dict[str, Any]]:
    """A random model with `count` random damages, and random conversion options."""
    model = read_model(rng.choice(sources))
    graph = rng.choice(model.graphs)
    for _ in range(rng.choice(times)):
        op = rng.choice(graph.ops)
        tensor = rng.choice([t for t in (*op.inputs, *op.outputs) if t is not None])
        rng.choice(DAMAGES)(rng, graph, op, tensor)
    options: dict[str, Any] = {"larq_compatible": rng.random() < 0.5}
    if rng.random() < 0.3:
        options["experimental_default_int8_range"] = (-3, 3)
    if rng.random() < 0.3:
        options["low_bit_weights"] = rng.choice(["int4", "int2"])
        options["dynamic_range"] = rng.random() < 0.5
    if rng.random() < 0.2:
        options[rng.choice(["inference_input_type", "inference_output_type"])] = "int8"
    return write_model(model), options
