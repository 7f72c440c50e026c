"""Runs TensorFlow Lite's reference kernels. The export fills tables with their results, and tests compare exported
networks with them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np

from litebnn.contract import CUSTOM_OPS
from litebnn.errors import ConversionError, printable
from litebnn.flatbuffer import read_model, write_model
from litebnn.graph import Array, Buffer, Graph, Model, Op, Quantization, Tensor, builtin_op, constant
from litebnn.micro.fixed_point import quantized_multiplier, scaled_twice
from litebnn.runtime.delegate import load_delegate
from litebnn.runtime.find import find_runtime
from litebnn.runtime.predictor import FAILURES, reason


def reference_interpreter(model: bytes, *, with_library: bool) -> Any:
    """The runtime's interpreter with its reference kernels and, for binary ops, litebnn's portable instruction set.

    Raises:
        ImportError: no runtime is installed.
        OSError: litebnn's library is not found.
        ValueError: the runtime refuses the model.
    """
    runtime = find_runtime()
    delegates = [load_delegate(isa="portable")] if with_library else []
    resolvers = runtime.OpResolverType.BUILTIN_REF, runtime.OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES
    for resolver in resolvers:
        try:
            interpreter = runtime.Interpreter(
                model_content=model, experimental_op_resolver_type=resolver, experimental_delegates=delegates
            )
            interpreter.allocate_tensors()
            return interpreter
        except FAILURES as error:
            # The runtime has no reference kernels for ELU and a few other ops. For models with such ops, the loop tries
            # the next resolver.
            if resolver is resolvers[-1] or "Didn't find op" not in str(error):
                raise ValueError(f"the runtime refuses the model: {reason(error)}") from None
    raise AssertionError("the last resolver returns or raises")


def run_reference(interpreter: Any, inputs: Sequence[Array]) -> list[Array]:
    """Runs the interpreter on one set of inputs and returns the outputs.

    Raises:
        ValueError: the runtime cannot run the model.
    """
    for detail, array in zip(interpreter.get_input_details(), inputs, strict=True):
        interpreter.set_tensor(detail["index"], array)
    try:
        interpreter.invoke()
    except FAILURES as error:
        raise ValueError(f"the runtime cannot run the model: {reason(error)}") from None
    return [np.array(interpreter.get_tensor(detail["index"])) for detail in interpreter.get_output_details()]


def check_shapes(graph: Graph) -> None:
    """Compares the shapes in a model with those that the runtime computes, because an export relies on the shapes in
    the model.

    The shapes of litebnn's own ops are not compared, because `check_custom_ops` checks them.

    Raises:
        ConversionError: the runtime computes another shape; the message names the tensor.
        ValueError: the runtime refuses the model.
    """
    own = [op for op in graph.ops if op.name in CUSTOM_OPS]
    inputs = [*graph.inputs, *(op.output for op in own)]
    results = [op.output for op in graph.ops if op not in own]
    if not results:
        return
    rest = Graph("main", graph.tensors, inputs, results, [op for op in graph.ops if op not in own])
    content = write_model(_model_of(rest))
    details = reference_interpreter(content, with_library=False).get_tensor_details()
    shapes = {detail["index"]: tuple(int(size) for size in detail["shape"]) for detail in details}
    for index, tensor in enumerate(read_model(content).graphs[0].tensors):
        found = shapes.get(index, tensor.shape)
        if found != tensor.shape:
            message = f'"{tensor.name}" has shape {list(tensor.shape)} in the model, but {list(found)} in the runtime'
            raise ConversionError(printable(message))


def _model_of(graph: Graph) -> Model:
    return Model([graph], [Buffer()], list(dict.fromkeys(op.code for op in graph.ops)), [], None, None, 3, "a part")


def _outputs(op: Op, inputs: Sequence[Tensor], values: Sequence[Array]) -> Array:
    """Runs a model of one op and returns the op's output."""
    graph = Graph("main", [*inputs, op.output], list(inputs), [op.output], [op])
    return run_reference(reference_interpreter(write_model(_model_of(graph)), with_library=False), values)[0]


def outputs_of_op(op: Op, values: Mapping[Tensor, Array]) -> Array:
    """The output of one op without constants. `values` are the values of its inputs, whose shapes may differ from those
    in the model.

    Raises:
        ValueError: the runtime refuses the op, for example because it has no kernel for the op's types.
    """
    renamed = {
        tensor: Tensor(tensor.name, tensor.type, values[tensor].shape, quantization=tensor.quantization)
        for tensor in values
    }
    shape = next(iter(values.values())).shape
    result = Tensor(op.output.name, op.output.type, shape, quantization=op.output.quantization)
    alone = Op(op.code, [renamed[tensor] for tensor in op.inputs if tensor is not None], [result], op.options)
    return _outputs(alone, list(renamed.values()), [values[tensor] for tensor in values])


@cache
def dense_rounds_once() -> bool:
    """True if the runtime's int8 dense layers round only once when they scale a sum to the output.

    TensorFlow Lite rounds after a multiplication and again after a shift, as gemmlowp does. LiteRT 2.3 rounds only
    once, also with its reference kernels.
    """
    rows = np.arange(-128, 128).astype(np.int8).reshape(-1, 1)
    # The weight makes each product slightly smaller than half of the input. For odd inputs, only a kernel that rounds
    # twice rounds the product up.
    grids = {"one": _grid(1.0), "factor": _grid((1 << 18) / 1032)}
    x = Tensor("x", "INT8", rows.shape, quantization=grids["one"])
    kernel = constant("kernel", np.full((1, 1), 127, np.int8), grids["one"])
    y = Tensor("y", "INT8", rows.shape, quantization=grids["factor"])
    op = builtin_op("FULLY_CONNECTED", [x, kernel], y, version=4)
    multiplier, shift = quantized_multiplier(1 / float(grids["factor"].scale[0]))
    twice = [scaled_twice(127 * value, multiplier, shift) for value in rows.reshape(-1).tolist()]
    return bool((_outputs(op, [x], [rows]).reshape(-1) != np.clip(twice, -128, 127)).any())


def _grid(scale: float) -> Quantization:
    return Quantization(np.array([scale], np.float32), np.zeros(1, np.int64))
