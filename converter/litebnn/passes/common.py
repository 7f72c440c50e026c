"""What several passes need to look at a graph and to build its ops."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from litebnn.contract import (
    BCONV_2D,
    BITS_PER_WORD,
    DEQUANTIZE,
    QUANTIZE,
    Activation,
    BConv2DOptions,
    decode_options,
    encode_options,
)
from litebnn.flatbuffer import Array, Buffer, Graph, Op, OpCode, Tensor, constant, packed_words, schema

ACTIVATION_OPS = {
    "RELU": Activation.RELU,
    "RELU_N1_TO_1": Activation.RELU_N1_TO_1,
    "RELU6": Activation.RELU6,
}
OPS_OF_ACTIVATION = {activation: name for name, activation in ACTIVATION_OPS.items()}


def custom(name: str) -> OpCode:
    return OpCode("CUSTOM", name)


def builtin(name: str, version: int = 1) -> OpCode:
    return OpCode(name, "", version)


def derived(name: str, suffix: str) -> str:
    """A name for a new tensor: the first of the names that exporters join by semicolons, and a suffix."""
    return name.split(";")[0] + suffix


def like(tensor: Tensor, name: str, *, type: str | None = None, dims: Sequence[int] | None = None) -> Tensor:
    """A new tensor with the dimensions of `tensor` (or `dims`, -1 for unknown ones) and no quantization."""
    dims = tuple(tensor.dims if dims is None else dims)
    return Tensor(
        name=name,
        type=type or tensor.type,
        shape=tuple(1 if d < 0 else d for d in dims),
        buffer=Buffer(),
        shape_signature=dims if any(d < 0 for d in dims) else None,
    )


def packed_dims(tensor: Tensor) -> tuple[int, ...]:
    return (*tensor.dims[:-1], packed_words(tensor.channels))


def quantize(graph: Graph, source: Tensor, name: str, *, before: Op) -> Tensor:
    """Inserts `LceQuantize(source)` and returns its packed output."""
    packed = like(source, name, type="INT32", dims=packed_dims(source))
    graph.insert(Op(custom(QUANTIZE), [source], [packed]), before=before)
    return packed


def bits_of(graph: Graph, tensor: Tensor | None) -> Tensor | None:
    """The packed tensor that `tensor` unpacks, where it is the output of an `LceDequantize`."""
    producer = graph.producer(tensor)
    return producer.input(0) if producer is not None and producer.name == DEQUANTIZE else None


def uniform(tensor: Tensor | None) -> float | None:
    """The value of a constant whose elements are all the same (after dequantization, where it is quantized)."""
    array = None if tensor is None else tensor.array
    if array is None or array.size == 0 or array.dtype.kind not in "fiub":
        return None
    first = array.reshape(-1)[0]
    if not np.all(array == first):
        return None
    assert tensor is not None
    if tensor.quantization is not None and tensor.type in ("INT8", "UINT8", "INT16"):
        scaled = tensor.per_tensor_quantization
        return None if scaled is None else (float(first) - scaled[1]) * scaled[0]
    return float(first)


def fused_activation(op: Op) -> Activation | None:
    """The op's fused activation; None for one that no binary op has (tanh, sign bit)."""
    value = 0 if op.options is None else getattr(op.options, "fusedActivationFunction", 0)
    return Activation(value) if value in Activation._value2member_map_ else None


def bconv_options(op: Op) -> BConv2DOptions:
    options = decode_options(BCONV_2D, op.custom_options)
    assert isinstance(options, BConv2DOptions)
    return options


def set_bconv_options(op: Op, options: BConv2DOptions) -> None:
    op.custom_options = encode_options(options)


def channels_per_group(op: Op) -> int:
    """How many real channels a filter of this `LceBconv2d` reads at a tap."""
    channels_in = bconv_options(op).channels_in
    words = op.input(1).shape[3]
    return min(channels_in, words * BITS_PER_WORD)


def dot_max(op: Op) -> int:
    """The largest dot product of an `LceBconv2d`: taps times channels per group."""
    _, height, width, _ = op.input(1).shape
    return height * width * channels_per_group(op)


def channel_values(op: Op, index: int, default: float) -> Array:
    """float32 [O] of an `LceBconv2d`'s multiplier (2) or bias (3)."""
    tensor = op.optional(index)
    if tensor is None:
        return np.full(op.input(1).shape[0], default, np.float32)
    array = tensor.array
    assert array is not None
    return array


def is_float_bconv(op: Op | None) -> bool:
    return op is not None and op.name == BCONV_2D and op.output.type == "FLOAT32"


def reshape_op(source: Tensor, output: Tensor) -> Op:
    """RESHAPE of `source` to the dimensions of `output`, at most one of which may be unknown."""
    sizes = np.asarray(output.dims, np.int32)
    if sizes.size and np.all(sizes > 0):
        sizes[0] = -1  # so that the model can still be resized to another batch
    options: Any = schema.ReshapeOptionsT()
    options.newShape = sizes
    shape = constant(derived(output.name, "/shape"), sizes)
    return Op(builtin("RESHAPE"), [source, shape], [output], options)


def activation_op(activation: Activation, source: Tensor, output: Tensor) -> Op:
    return Op(builtin(OPS_OF_ACTIVATION[activation]), [source], [output])


def binary_op(name: str, left: Tensor, right: Tensor, output: Tensor) -> Op:
    """ADD, SUB, MUL or DIV without a fused activation."""
    options: Any = getattr(schema, name.capitalize() + "OptionsT")()
    return Op(builtin(name), [left, right], [output], options)


def split_activation(graph: Graph, op: Op) -> bool:
    """Makes the fused activation of an op that knows one an op of its own; False where there is none to split."""
    activation = fused_activation(op)
    if not activation:
        return False
    inner = like(op.output, derived(op.output.name, "/linear"))
    outer = activation_op(activation, inner, op.output)
    position = graph.ops.index(op)
    after = graph.ops[position + 1] if position + 1 < len(graph.ops) else None
    graph.remove(op)
    op.options.fusedActivationFunction = 0
    op.outputs = [inner]
    graph.insert(op, before=after)
    graph.insert(outer, before=after)
    return True
