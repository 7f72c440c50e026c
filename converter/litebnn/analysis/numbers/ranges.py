"""Bounds of tensors by interval arithmetic: what no value of a tensor can exceed, whatever the model's input is.

A sign asks for them: sign(x) of an x that is never negative takes the values 0 and 1.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import TypeAlias

import numpy as np

from litebnn.analysis.layouts import picked_from
from litebnn.analysis.match import SIGNS, floats, fused_activation, number_of, output_limits, uniform
from litebnn.analysis.padding import constant_padding, pooled_input
from litebnn.analysis.quantization import Range, grid_range, step_of
from litebnn.analysis.thresholds import threshold_of
from litebnn.analysis.weights import bias_values
from litebnn.contract import LCE_DEQUANTIZE
from litebnn.graph import Graph, Op, Question, Tensor, facts

UNBOUNDED: Range = (-math.inf, math.inf)
# A sum, a mean or an approximated function may exceed its exact bound by rounding, at most by this share. Zero is
# never exceeded.
_ROUNDING = 1e-3
_SIDES = (np.greater_equal, np.less_equal)
_FIRST = 64
_LAYERS = ("BATCH_MATMUL", "CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED", "TRANSPOSE_CONV")


def _hull(ranges: Iterable[Range]) -> Range:
    lows, highs = zip(*ranges, strict=True)
    return min(lows), max(highs)


def _hull_of(op: Op, of: list[Range]) -> Range:
    return _hull(of)


def _rounded(low: float, high: float) -> Range:
    return low - _ROUNDING * abs(low), high + _ROUNDING * abs(high)


def _products(left: Range, right: Range) -> Range:
    # No number is infinite, so that a bound of zero stays zero.
    products = [0.0 if 0 in (a, b) else a * b for a in left for b in right]
    return min(products), max(products)


def _magnitudes(x: Range) -> Range:
    low, high = abs(x[0]), abs(x[1])
    return 0.0 if x[0] <= 0 <= x[1] else min(low, high), max(low, high)


def _signed(x: Range) -> Range:
    """Bounds of an op that keeps the sign of every value."""
    return 0.0 if x[0] >= 0 else -math.inf, 0.0 if x[1] <= 0 else math.inf


def _within(low: float, high: float) -> Callable[[Op, list[Range]], Range]:
    """Makes the bounds of an op that keeps signs, and has values between two numbers."""

    def bounds(op: Op, of: list[Range]) -> Range:
        kept = _signed(of[0])
        return _rounded(max(low, kept[0]), min(high, kept[1]))

    return bounds


def _sum(op: Op, of: list[Range]) -> Range:
    return of[0][0] + of[1][0], of[0][1] + of[1][1]


def _difference(op: Op, of: list[Range]) -> Range:
    return of[0][0] - of[1][1], of[0][1] - of[1][0]


def _product(op: Op, of: list[Range]) -> Range:
    product = _products(*of)
    return (max(product[0], 0.0), product[1]) if op.inputs[0] is op.inputs[1] else product


def _quotient(op: Op, of: list[Range]) -> Range:
    low, high = of[1]
    if low < 0 < high:
        return UNBOUNDED
    with np.errstate(divide="ignore"):  # a quotient of zeros is NaN
        limit = -0.0 if low < 0 else 0.0
        ends = 1 / np.array([high or limit, low or limit])
    return _products(of[0], tuple(ends.tolist()))


def _power(op: Op, of: list[Range]) -> Range:
    exponent = uniform(op.input(1))
    return (0.0, math.inf) if of[0][0] >= 0 or (exponent is not None and exponent % 2 == 0) else UNBOUNDED


def _sloped(op: Op, of: list[Range]) -> Range:
    """Bounds of x above zero and of x · slope below."""
    low, high = of[0]
    alpha = getattr(op.options, "alpha", 0.0)
    below = _products((min(low, 0.0), min(high, 0.0)), of[1] if op.name == "PRELU" else (alpha, alpha))
    above = (max(low, 0.0), max(high, 0.0))
    return _hull([below] * (low < 0) + [above] * (high > 0 or low >= 0))


def _padded(op: Op, of: list[Range]) -> Range:
    padding = constant_padding(op)
    return UNBOUNDED if padding is None else _hull([of[0], (padding.value, padding.value)])


def _of_layer(op: Op, of: list[Range]) -> Range:
    """Bounds of a layer whose weights have one sign, such as an upsampling or a mean that is written as a layer."""
    weights, *bias = facts(op).constants
    offsets = bias_values(op.optional(bias[0]) if bias else None, op.output.channels)
    if offsets is None:
        return UNBOUNDED
    low, high = _products(_signed(of[facts(op).data]), of[weights])
    return _signed((low + float(offsets.min(initial=0)), high + float(offsets.max(initial=0))))


def _compared(op: Op, of: list[Range]) -> Range:
    """Bounds of packed signs: one number if no value lies on the other side of the threshold."""
    threshold = threshold_of(op)
    assert threshold is not None
    level = np.ones(1) if op.input(0).type == "BOOL" else threshold.level
    signs = np.where((np.array(of[0])[:, None] >= level) != threshold.falls, 1.0, -1.0)
    return float(signs.min()), float(signs.max())


def _has_one_sign(weights: Tensor | None) -> bool:
    """True for constant weights of one sign; the first ones usually tell."""
    array = floats(weights)
    if array is None:
        return False
    flat = array.reshape(-1)
    return any(np.all(side(flat[:_FIRST], 0)) and np.all(side(flat, 0)) for side in _SIDES)


_Bounds: TypeAlias = Callable[[Op, list[Range]], Range]
# For each kind of op, the function that computes the bounds of its output from those of its inputs.
_BOUNDS: dict[str, _Bounds] = {
    **dict.fromkeys(("EXP", "RSQRT", "SQRT", "SQUARED_DIFFERENCE"), lambda op, of: (0.0, math.inf)),
    **dict.fromkeys(("LOGISTIC", "SOFTMAX"), lambda op, of: _rounded(0.0, 1.0)),
    **dict.fromkeys(("AVERAGE_POOL_2D", "MEAN", "RESIZE_BILINEAR"), lambda op, of: _rounded(*of[0])),
    **dict.fromkeys(("CUMSUM", "ELU", "GELU", "L2_NORMALIZATION", "SUM"), lambda op, of: _signed(of[0])),
    **dict.fromkeys(("DEQUANTIZE", "QUANTIZE"), lambda op, of: of[0]),
    **dict.fromkeys(("CONCATENATION", "MAX_POOL_2D", "PACK", "REDUCE_MAX", "REDUCE_MIN"), _hull_of),
    **dict.fromkeys(("PAD", "PADV2", "SPACE_TO_BATCH_ND"), _padded),
    **dict.fromkeys(("LEAKY_RELU", "PRELU"), _sloped),
    **dict.fromkeys(_LAYERS, _of_layer),
    "ABS": lambda op, of: _magnitudes(of[0]),
    "ADD": _sum,
    # A CAST of a quantized tensor reads its integers.
    "CAST": lambda op, of: of[0] if op.input(0).quantization is None else UNBOUNDED,
    "DIV": _quotient,
    "LOG": lambda op, of: _rounded(*(math.log(each) if each > 0 else -math.inf for each in of[0])),
    "HARD_SWISH": lambda op, of: (0.0 if of[0][0] >= 0 else -0.5, max(of[0][1], 0.0)),
    "MAXIMUM": lambda op, of: (max(of[0][0], of[1][0]), max(of[0][1], of[1][1])),
    "MINIMUM": lambda op, of: (min(of[0][0], of[1][0]), min(of[0][1], of[1][1])),
    "MUL": _product,
    "NEG": lambda op, of: (-of[0][1], -of[0][0]),
    "POW": _power,
    "SIGN": _within(-1.0, 1.0),
    "SQUARE": lambda op, of: _products(_magnitudes(of[0]), _magnitudes(of[0])),
    "SUB": _difference,
    "TANH": _within(-1.0, 1.0),
    **dict.fromkeys(SIGNS, _compared),
    LCE_DEQUANTIZE: lambda op, of: _clipped(of[0], (-1.0, 1.0)),
}


def _read(op: Op) -> list[Tensor | None]:
    """The inputs on whose bounds those of the output depend."""
    if op.name in _LAYERS:
        return op.inputs if _has_one_sign(op.optional(facts(op).constants[0])) else []
    if fused_activation(op) is None:
        return []
    if op.name in ("CUMSUM", "MAX_POOL_2D", "MEAN", "REDUCE_MAX", "REDUCE_MIN", "SUM"):
        return op.inputs[:1]
    picked = picked_from(op)
    if op.name not in _BOUNDS and picked:
        return [op.optional(index) for index in picked]
    return op.inputs if op.name in _BOUNDS or facts(op).clamp_limits is not None else []


def _packed(graph: Graph, unpack: Op) -> Tensor | None:
    """Returns the bits that an LceDequantize reads, if a comparison packs them: padded bits are padded with words."""
    return unpack.input(0) if graph.producer(unpack.input(0), *SIGNS) is not None else None


def _clipped(x: Range, limits: Range) -> Range:
    return min(max(x[0], limits[0]), limits[1]), max(min(x[1], limits[1]), limits[0])


# For each kind of op whose bounds depend on ops further upstream, the tensor on whose bounds they depend.
_SOURCES: dict[str, Callable[[Graph, Op], Tensor | None]] = {"MAX_POOL_2D": pooled_input, LCE_DEQUANTIZE: _packed}


def _range(graph: Graph, tensor: Tensor) -> Range:
    limits = grid_range(tensor) or ((0.0, 1.0) if tensor.type == "BOOL" else UNBOUNDED)
    array, number = floats(tensor), number_of(graph, tensor)
    if number is not None:
        return number, number
    if array is not None and array.size:
        return (float(array.min()), float(array.max())) if np.all(np.isfinite(array)) else UNBOUNDED
    op = graph.producer(tensor)
    if op is None:
        return limits
    source = _SOURCES.get(op.name)
    read = _read(op) if source is None else [source(graph, op)]
    known = [UNBOUNDED if each is None else range_of(graph, each) for each in read]
    bounds = _BOUNDS.get(op.name, _hull_of)(op, known) if known else UNBOUNDED
    bounds = _clipped(bounds, output_limits(op))
    if any(math.isnan(bound) for bound in bounds):
        return limits
    steps = np.array([-1, 1]) * step_of(tensor) * np.sign(np.abs(bounds))  # rounding to a grid keeps zero
    low, high = np.asarray(bounds + steps, np.float32).tolist()
    return _clipped((low, high), limits)


# range_of(graph, tensor) returns the least and the greatest value, in float32, that a tensor can have. NaN does not
# count, and an op that this module does not know has no bounds.
range_of = Question(_range, _read)
