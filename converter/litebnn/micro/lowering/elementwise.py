"""Lowers ops on single elements: sums, products, activations, quantization and softmax."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from litebnn.graph import Op, Tensor
from litebnn.micro.fixed_point import quantized_multiplier, softmax_exponents
from litebnn.micro.lowering.windows import range_of
from litebnn.micro.program import (
    AXES,
    Argument,
    Call,
    Context,
    Data,
    Literal,
    Lowered,
    Read,
    Struct,
    Value,
    Write,
    check_types,
    grid,
    refuse,
    strides_of,
)
from litebnn.micro.reference import outputs_of_op

# The number of bits by which TFLite's kernel shifts the inputs of an int8 sum to the left before it adds them.
_SUM_BITS = 20

_CLAMPS = {
    "RELU": (0.0, math.inf),
    "RELU6": (0.0, 6.0),
    "RELU_N1_TO_1": (-1.0, 1.0),
    "RELU_0_TO_1": (0.0, 1.0),
}
# The ops whose float results may differ from those of TFLite's reference kernels in the last bits.
_INEXACT = ("LOGISTIC", "TANH", "ELU")
UNARY = (*_CLAMPS, *_INEXACT, "LEAKY_RELU", "HARD_SWISH", "ABS", "NEG", "SIGN", "SQUARE")


def broadcast_of(context: Context, op: Op) -> dict[str, Value]:
    """The fields of the C structure `litebnn_broadcast`: the sizes of the output, and the strides of both inputs."""
    sizes = context.shape(op.output)
    strides = [_strides(context.shape(tensor), sizes) for tensor in (op.input(0), op.input(1))]
    merged = _merged(sizes, strides)
    if len(merged[0]) > AXES:
        raise refuse(f"its inputs are broadcast along more than {AXES} axes")
    names = ("sizes", "first", "second")
    rest = AXES - len(merged[0])
    return {
        name: ((1,) if name == "sizes" else (0,)) * rest + tuple(row) for name, row in zip(names, merged, strict=True)
    }


def _strides(shape: Sequence[int], sizes: Sequence[int]) -> list[int]:
    """The strides of an input along the axes of the output, in elements; 0 along axes over which the input is
    broadcast."""
    padded = (*[1] * (len(sizes) - len(shape)), *shape)
    return [0 if size == 1 else stride for size, stride in zip(padded, strides_of(padded), strict=True)]


def _merged(sizes: Sequence[int], strides: Sequence[Sequence[int]]) -> tuple[list[int], ...]:
    """Merges neighbouring axes into one if this is possible for all inputs, so that the inner loop is long."""
    axes = [(size, *steps) for size, *steps in zip(sizes, *strides, strict=True) if size != 1] or [
        (1, *(0 for _ in strides))
    ]
    found = [axes[0]]
    for size, *steps in axes[1:]:
        above = found[-1]
        if all(outer == step * size for outer, step in zip(above[1:], steps, strict=True)):
            found[-1] = (above[0] * size, *steps)
        else:
            found.append((size, *steps))
    return tuple(list(column) for column in zip(*found, strict=True))


def _binary_call(context: Context, op: Op, function: str, kind: str, more: dict[str, Value]) -> Lowered:
    fields: dict[str, Value] = {"broadcast": broadcast_of(context, op), **more}
    arguments = (Struct(f"litebnn_binary_{kind}", fields), Read(op.input(0)), Read(op.input(1)), Write(op.output))
    in_place = context.shape(op.input(0)) == context.shape(op.output)
    work = {"elements": context.count(op.output)}
    return Lowered((Call(f"litebnn_{function}_{kind}", arguments, ("builtin/binary.c",), work),), in_place)


def binary(context: Context, op: Op) -> Lowered:
    """Lowers ADD, SUB, MUL, DIV, MAXIMUM, MINIMUM and PRELU."""
    check_types(op, "FLOAT32", "INT8")
    if not op.input(0).type == op.input(1).type == op.output.type:
        types = f"{op.input(0).type} and {op.input(1).type} to {op.output.type}"
        raise refuse(f"it computes {types}: expected one type")
    name = op.name.lower()
    if op.output.type == "FLOAT32":
        limits: dict[str, Value] = {"low": -math.inf, "high": math.inf}
        ranges = limits if op.name in ("PRELU", "MAXIMUM", "MINIMUM") else range_of(op)
        return _binary_call(context, op, name, "float", {"range": ranges})
    if op.name not in _INT8:
        raise refuse("on INT8 it is not known, expected FLOAT32")
    return _binary_call(context, op, {"SUB": "add"}.get(op.name, name), "int8", _INT8[op.name](op))


def _grids(op: Op) -> tuple[list[float], dict[str, Value]]:
    """The scales of both inputs and of the output, and the zero points of the three tensors as fields of a C
    structure.
    """
    grids = [grid(tensor) for tensor in (op.input(0), op.input(1), op.output)]
    names = ("first_zero_point", "second_zero_point", "output_zero_point")
    return [scale for scale, _ in grids], dict(zip(names, (zero for _, zero in grids), strict=True))


def _factors(**factors: float) -> dict[str, Value]:
    """The multiplier and shift of each real factor, as fields of a C structure."""
    pairs = {name: quantized_multiplier(factor) for name, factor in factors.items()}
    return {
        **{f"{name}_multiplier": multiplier for name, (multiplier, _) in pairs.items()},
        **{f"{name}_shift": shift for name, (_, shift) in pairs.items()},
    }


def _int8_sum(op: Op) -> dict[str, Value]:
    (first, second, result), zero_points = _grids(op)
    twice = 2 * max(first, second)
    factors = _factors(first=first / twice, second=second / twice, output=twice / ((1 << _SUM_BITS) * result))
    multiplier = factors["second_multiplier"]
    assert isinstance(multiplier, int)
    sign = -1 if op.name == "SUB" else 1
    return {**zero_points, **factors, "second_multiplier": sign * multiplier, "range": range_of(op)}


def _int8_product(op: Op) -> dict[str, Value]:
    (first, second, result), zero_points = _grids(op)
    return {**zero_points, **_factors(output=first * second / result), "range": range_of(op)}


def _int8_prelu(op: Op) -> dict[str, Value]:
    (first, second, result), zero_points = _grids(op)
    factors = _factors(first=first / result, output=first * second / result)
    return {**zero_points, **factors, "range": {"low": -128, "high": 127}}


def _int8_extreme(op: Op) -> dict[str, Value]:
    if len({grid(tensor) for tensor in (op.input(0), op.input(1), op.output)}) > 1:
        raise refuse("its inputs and its output have several scales, expected one")
    return {"range": {"low": -128, "high": 127}}


_INT8: dict[str, Callable[[Op], dict[str, Value]]] = {
    "ADD": _int8_sum,
    "SUB": _int8_sum,
    "MUL": _int8_product,
    "PRELU": _int8_prelu,
    "MAXIMUM": _int8_extreme,
    "MINIMUM": _int8_extreme,
}


def unary(context: Context, op: Op) -> Lowered:
    """Lowers ops on single elements, such as RELU and EXP.

    For int8, the export computes a table of all 256 results with the runtime's reference kernel.
    """
    check_types(op, "FLOAT32", "INT8")
    if op.output.type == "INT8":
        return _lookup(context, op)
    count = context.count(op.output)
    more: tuple[Argument, ...] = ()
    function = op.name.lower()
    if op.name in _CLAMPS:
        low, high = _CLAMPS[op.name]
        function, more = "clamp", (Literal("litebnn_range_float", {"low": low, "high": high}),)
    elif op.name == "LEAKY_RELU":
        more = (float(op.options.alpha),)
    arguments = (*more, Read(op.input(0)), count, Write(op.output))
    call = Call(f"litebnn_{function}_float", arguments, ("builtin/unary.c",), {"elements": count})
    return Lowered((call,), in_place=True, exact=op.name not in _INEXACT)


def _lookup(context: Context, op: Op) -> Lowered:
    source, count = op.input(0), context.count(op.output)
    if source.type != "INT8":
        raise refuse(f"its input is {source.type} and its output INT8: expected one type")
    values = np.arange(-128, 128).astype(np.int8)
    try:
        table = outputs_of_op(op, {source: values})
    except ValueError as error:
        raise refuse(str(error)) from None
    arguments = (Data(table), Read(source), count, Write(op.output))
    call = Call("litebnn_lookup_int8", arguments, ("builtin/unary.c",), {"elements": count})
    return Lowered((call,), in_place=True)


def quantize(context: Context, op: Op) -> Lowered:
    """Lowers QUANTIZE from float, or from one int8 scale to another."""
    source, result = op.input(0), op.output
    check_types(op, "FLOAT32", "INT8")
    if source.type == "INT8":
        return _lookup(context, op)
    return _between_types(context, op, "litebnn_float_to_int8", result)


def dequantize(context: Context, op: Op) -> Lowered:
    """Lowers DEQUANTIZE from int8."""
    if op.input(0).type != "INT8" or op.output.type != "FLOAT32":
        raise refuse(f"it computes {op.input(0).type} to {op.output.type}, expected INT8 to FLOAT32")
    return _between_types(context, op, "litebnn_int8_to_float", op.input(0))


def _between_types(context: Context, op: Op, function: str, quantized: Tensor) -> Lowered:
    scale, zero_point = grid(quantized)
    count = context.count(op.output)
    arguments = (scale, zero_point, Read(op.input(0)), count, Write(op.output))
    return Lowered((Call(function, arguments, ("builtin/quantize.c",), {"elements": count}),))


def softmax(context: Context, op: Op) -> Lowered:
    """Lowers SOFTMAX along the last axis."""
    check_types(op, "FLOAT32", "INT8")
    source, result = op.input(0), op.output
    depth = context.shape(source)[-1]
    rows = context.count(source) // depth
    beta = float(op.options.beta)
    work = {"elements": rows * depth, "rows": rows}
    if source.type == result.type == "FLOAT32":
        arguments: tuple[Argument, ...] = (beta, Read(source), rows, depth, Write(result))
        return Lowered((Call("litebnn_softmax_float", arguments, ("builtin/softmax.c",), work),), True, exact=False)
    if source.type != result.type:
        raise refuse(f"it computes {source.type} to {result.type}: expected one type")
    if grid(result) != (1 / 256, -128):
        raise refuse(f"its output has the scale and zero point {grid(result)}, expected {(1 / 256, -128)}")
    if depth > 4096:
        raise refuse(f"it has {depth} classes, expected at most 4096, beyond which its sum overflows")
    exponents = softmax_exponents(grid(source)[0], beta)
    arguments = (Data(exponents), Read(source), rows, depth, Write(result))
    return Lowered((Call("litebnn_softmax_int8", arguments, ("builtin/softmax.c",), work),))
