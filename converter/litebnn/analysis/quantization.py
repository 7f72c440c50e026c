"""Handles quantization parameters and the arithmetic of quantized ops. A scale and a zero point together are called a
grid, because they define which numbers a tensor can represent."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

from litebnn.graph import NUMPY_TYPES, Array, Graph, Op, Quantization, QuantizationDetails, Tensor

Range: TypeAlias = tuple[float, float]
Ranges: TypeAlias = dict[Tensor, Range]

INT8_MIN, INT8_MAX = -128, 127
# The number of bits of each integer type that NumPy lacks.
NARROW_TYPES = {"INT4": 4, "INT2": 2}
# The smallest scale of a channel's weights, as a share of the largest scale in the layer. With smaller scales, the bias
# would not fit into 32 bits. They would also gain nothing, because all channels share the output's scale, which cannot
# represent such fine steps.
_FINEST_CHANNEL = 1 / 256
# The ops that convert values from float to a grid, from a grid to float, or from one grid to another.
ROUNDING = ("QUANTIZE", "DEQUANTIZE")
_GRIDS = ("INT8", "UINT8", "INT16")
# Rounding float32 to int8 switches from one value to the next near the middle between the two values. The switch is at
# most this many units in the last place away from the middle.
_MOST_ULPS = 4
# The numbers of fractional bits of two fixed-point factors in XNNPACK. The first is the larger factor of an int8 sum,
# the second converts int8 values from one scale to another.
_SUM_BITS, _QUANTIZE_BITS = 20, 8
# For each op with int8 arithmetic that this module can compute: the signs (+1 or -1) with which it adds its operands.
_SIGNS = {"ADD": (1, 1), "SUB": (1, -1), "QUANTIZE": (1,), "MUL": ()}


def parameters(scale: Any, zero_point: Any = 0, axis: int = 0) -> Quantization:
    """Makes quantization parameters (a grid) with one scale and zero point, or with one of each for each channel
    along `axis`.
    """
    scales = np.atleast_1d(np.asarray(scale, np.float32))
    return Quantization(scales, np.broadcast_to(np.asarray(zero_point, np.int64), scales.shape).copy(), axis)


def parameters_of_range(low: float, high: float, least_scale: float = 0.0) -> Quantization:
    """Returns the scale and zero point with which int8 represents all numbers in [low, high], and zero."""
    low, high = min(low, 0.0), max(high, 0.0)
    scale = max((high - low) / (INT8_MAX - INT8_MIN), least_scale, float(np.finfo(np.float32).tiny))
    zero_point = int(np.clip(round(INT8_MIN - low / scale), INT8_MIN, INT8_MAX))
    return parameters(scale, zero_point)


def round_half_away(values: Array) -> Array:
    rounded: Array = np.sign(values) * np.floor(np.abs(values) + 0.5)
    return rounded


def quantized(values: Array, scale: Any, zero_point: Any) -> Array:
    """Quantizes floats to int8 as the op QUANTIZE does."""
    levels = round_half_away(values.astype(np.float64) / scale) + zero_point
    clipped: Array = np.clip(levels, INT8_MIN, INT8_MAX).astype(np.int8)
    return clipped


def along_axis(values: Array, rank: int, axis: int) -> Array:
    """Reshapes values [n] so that they broadcast along `axis` of a tensor of rank `rank`; a single value is
    unchanged."""
    return values if values.size == 1 else values.reshape([-1 if i == axis else 1 for i in range(rank)])


def pack_levels(levels: Array, bits: int) -> Array:
    """Packs signed integers to bytes as TFLite stores INT4 and INT2, with the first integer in the lowest bits of a
    byte."""
    each = 8 // bits
    codes = (levels.reshape(-1) & ((1 << bits) - 1)).astype(np.uint8)
    rows = np.concatenate([codes, np.zeros(-codes.size % each, np.uint8)]).reshape(-1, each)
    packed: Array = np.bitwise_or.reduce(rows << (bits * np.arange(each, dtype=np.uint8)), axis=1)
    return packed


def stored_levels(tensor: Tensor) -> Array | None:
    """Returns the integers that a quantized constant stores, with INT4 and INT2 as int8; None for other tensors."""
    bits, stored = NARROW_TYPES.get(tensor.type, 0), tensor.buffer.data
    if not bits or not tensor.is_constant or stored is None or tensor.is_sparse or tensor.is_variable:
        return tensor.array
    count = math.prod(tensor.shape)
    if stored.size * 8 < count * bits or min(tensor.shape, default=0) < 0:
        return None
    high = np.arange(8 - bits, -1, -bits, dtype=np.uint8)  # left shifts that move a level's bits to the top of an int8
    levels = (stored.view(np.uint8)[:, None] << high).view(np.int8) >> (8 - bits)
    return levels.reshape(-1)[:count].reshape(tensor.shape)


def dequantized(tensor: Tensor) -> Array | None:
    """Returns the float32 values of a quantized constant with one scale, several, or one for each block of a row."""
    array, q = stored_levels(tensor), tensor.quantization
    if array is not None and tensor.details is not None:
        return _dequantized_blocks(array, tensor.details)
    if array is None or q is None or array.dtype.kind not in "iu":
        return None
    scale = along_axis(q.scale.astype(np.float64), array.ndim, q.axis)
    zero = along_axis(q.zero_point.astype(np.float64), array.ndim, q.axis)
    return ((array.astype(np.float64) - zero) * scale).astype(np.float32).reshape(array.shape)


def _dequantized_blocks(levels: Array, details: QuantizationDetails) -> Array | None:
    """Returns the float32 values of weights that are stored as integers [O, I] with scales [O, I / block size]. None if
    the scales are not constant, or are stored in another form.
    """
    scales, points = details.tensors["scales"], details.tensors["zero_points"]
    size, shape = details.options.block_size, getattr(details.options, "block_shape", None)
    known = None if scales is None else scales.array
    if details.options.table != "BlockwiseQuantization" or known is None or points is not None or shape is not None:
        return None
    blocks = levels.reshape(-1, size).astype(np.float64) * known.reshape(-1, 1)
    values: Array = blocks.astype(np.float32).reshape(levels.shape)
    return values


def bias_scale(source: Tensor | None, weights: Tensor | None, shape: tuple[int, ...]) -> Array | None:
    """Returns the scale of the int32 bias (of shape `shape`) of an int8 layer: float64 [1] or [channels]."""
    grid, q = source and source.per_tensor_quantization, weights and weights.quantization
    if not grid or not q or (q.scale.size > 1 and q.scale.shape != shape[-1:]):
        return None
    scale: Array = q.scale.astype(np.float64) * grid[0]
    return scale


def symmetric_scale(values: Array, axis: int) -> Array:
    """Returns the scales of int8 weights, float32 [1], or [channels] along an axis."""
    others = tuple(i for i in range(values.ndim) if i != axis)
    largest = np.atleast_1d(np.abs(values).max(axis=others if axis >= 0 else None))
    scale: Array = np.maximum(largest, _FINEST_CHANNEL * largest.max() or 1.0) / INT8_MAX
    return scale.astype(np.float32)


def without_fine_scales(weights: Tensor) -> Array | None:
    """Returns the scales of int8 weights, with those raised that are too fine beside the largest; None if there are no
    such scales."""
    q = weights.quantization
    least = 0.0 if q is None else _FINEST_CHANNEL * q.scale.max()
    return None if q is None or np.all(q.scale >= least) else np.maximum(q.scale, least).astype(np.float32)


def is_int8(tensor: Tensor | None) -> bool:
    return tensor is not None and tensor.type == "INT8" and tensor.per_tensor_quantization is not None


def is_quantized(tensor: Tensor) -> bool:
    """True if a single scale and zero point (grid) hold for the whole tensor, of int8 or another type."""
    return grid_range(tensor) is not None


def same_parameters(left: Tensor, right: Tensor) -> bool:
    return left.type == right.type and left.per_tensor_quantization == right.per_tensor_quantization is not None


def on_grid(values: Array, tensor: Tensor) -> Array | None:
    """Rounds numbers to values that the tensor can represent. If the tensor is float, the numbers are unchanged."""
    if tensor.type == "FLOAT32":
        return values
    limits = grid_range(tensor)
    if limits is None:
        return None
    scale, zero_point = tensor.per_tensor_quantization or (1.0, 0)
    levels = round_half_away(values.astype(np.float32) / np.float32(scale)) + zero_point
    return np.clip(from_levels(levels, scale, zero_point), *limits)


def from_levels(levels: Any, scale: float, zero_point: int) -> Array:
    """Returns the float32 values for which the integers of a quantized tensor stand. They are rounded as the op
    DEQUANTIZE rounds them: for example, 127 with the scale 1/127 is exactly 1.
    """
    values: Array = (np.asarray(levels, np.float32) - np.float32(zero_point)) * np.float32(scale)
    return values


def grid_range(tensor: Tensor) -> tuple[float, float] | None:
    """Returns the lowest and the highest value of a tensor that has a single scale and zero point; None for other
    tensors.
    """
    numbers = numbers_of_grid(tensor)
    return None if numbers is None else (float(numbers[0]), float(numbers[-1]))


def ends_within(tensor: Tensor, low: float, high: float) -> bool:
    """True if the quantization of a tensor cannot represent numbers outside of [low, high]. The limits may be exceeded
    by half a quantization step.
    """
    limits, half = grid_range(tensor), step_of(tensor) / 2
    return limits is not None and low - half <= limits[0] and limits[1] <= high + half


def covers(tensor: Tensor, low: float, high: float) -> bool:
    """True if the quantization of a tensor clips no number in [low, high] by more than half a quantization step."""
    limits, half = grid_range(tensor), step_of(tensor) / 2
    return limits is not None and limits[0] - half <= low and high <= limits[1] + half


def numbers_of_grid(tensor: Tensor) -> Array | None:
    """Returns all values that a tensor with a single scale and zero point can take, float32 [levels], ascending;
    None for other tensors.
    """
    grid = tensor.per_tensor_quantization
    if grid is None or tensor.type not in _GRIDS:
        return None
    return _numbers(tensor.type, *grid)


# A small cache is enough, because a network has few quantization parameters and uses each of them many times.
@functools.lru_cache(maxsize=64)
def _numbers(type_name: str, scale: float, zero_point: int) -> Array:
    limits = np.iinfo(NUMPY_TYPES[type_name])
    numbers = from_levels(np.arange(limits.min, limits.max + 1), scale, zero_point)
    numbers.flags.writeable = False
    return numbers


def step_of(tensor: Tensor) -> float:
    """Returns the scale of a tensor that has a single scale and zero point; 0 for other tensors."""
    grid = tensor.per_tensor_quantization if is_quantized(tensor) else None
    return 0.0 if grid is None else grid[0]


def first_rounded_to(numbers: Array, tensor: Tensor) -> Array:
    """For each number, returns the least float32 that the tensor's quantization rounds to this number or to a greater
    one. The tensor must be able to represent the numbers.
    """

    def reach(floats: Array) -> Array:
        rounded = on_grid(floats, tensor)
        assert rounded is not None
        reached: Array = rounded >= numbers
        return reached

    first = (numbers - np.float32(step_of(tensor) / 2)).astype(np.float32)
    for _ in range(_MOST_ULPS):
        first = np.where(reach(first), first, np.nextafter(first, np.float32(np.inf)))
    for _ in range(2 * _MOST_ULPS):
        before = np.nextafter(first, np.float32(-np.inf))
        first = np.where(reach(before), before, first)
    return first


def next_of_grid(numbers: Array, tensor: Tensor) -> Array:
    """For each number, returns the least number that the tensor can represent and that is not below it. For a float
    tensor, returns the numbers themselves.
    """
    levels = numbers_of_grid(tensor)
    if levels is None:
        return numbers
    nearest: Array = levels[np.minimum(np.searchsorted(levels, numbers), len(levels) - 1)]
    return nearest


def as_compared(values: Array, scale: float) -> Array:
    """Rescales the values of an int8 tensor as the runtime's comparison ops do: to fixed point with 8 fractional
    bits."""
    counts = np.rint(values.astype(np.float64) / np.float32(scale)).astype(np.int64) << 8
    fraction, exponent = np.frexp(np.float64(np.float32(scale)))
    product = counts * int(round_half_away(fraction * 2**31))
    high = (np.abs(product) + np.where(product < 0, (1 << 30) - 1, 1 << 30)) >> 31
    scaled: Array = round_half_away(np.where(product < 0, -high, high) * 2.0**exponent)
    return scaled


def undequantized(graph: Graph, tensor: Tensor) -> Tensor:
    """Returns the input of the DEQUANTIZE that computes `tensor`; `tensor` itself if another op computes it."""
    op = graph.producer(tensor, "DEQUANTIZE")
    return tensor if op is None else op.input(0)


def unrounded(graph: Graph, tensor: Tensor) -> Tensor:
    """Returns the tensor from which only QUANTIZE and DEQUANTIZE ops compute `tensor`; `tensor` itself if another op
    computes it."""
    while (op := graph.producer(tensor, *ROUNDING)) is not None:
        tensor = op.input(0)
    return tensor


def int8_source(graph: Graph, tensor: Tensor | None) -> Tensor | None:
    """If a DEQUANTIZE computes `tensor`, returns its int8 input; None for other tensors."""
    source = None if tensor is None else undequantized(graph, tensor)
    return source if source is not tensor and is_int8(source) else None


def trained_weights(graph: Graph, weights: Tensor) -> Tensor | None:
    """Returns the int8 constant from which a DEQUANTIZE computes weights, as fake quantization leaves them. None for
    other weights, and for zero points other than 0."""
    stored = undequantized(graph, weights)
    q = None if stored is weights or stored.type != "INT8" or stored.array is None else stored.quantization
    return None if q is None or np.any(q.zero_point) else stored


def below_level(level: Array, x: Tensor) -> Array:
    """Returns the thresholds, float32, with which the values of x are compared as floats. A threshold of a quantized x
    moves down by half a step, where x has no value. The threshold 0 stays, because LceQuantize compares with it.
    """
    return np.where(level == 0, level, level - step_of(x) / 2).astype(np.float32)


def int8_results(graph: Graph, tensor: Tensor) -> list[Op]:
    """Returns the QUANTIZE ops that read `tensor`, if all its consumers are QUANTIZE ops with the same int8 result."""
    if graph.is_output(tensor):
        return []
    consumers = graph.consumers(tensor)
    if not consumers or any(c.name != "QUANTIZE" or not is_int8(c.output) for c in consumers):
        return []
    return consumers if all(same_parameters(c.output, consumers[0].output) for c in consumers) else []


def computed_on_grid(op: Op, operands: Sequence[Array]) -> Array | None:
    """Returns the float32 values of a quantized op's output as XNNPACK, the default of all runtimes, computes them.

    XNNPACK's fixed-point factors have fewer bits than those of TensorFlow's own kernels, so an int8 result may differ
    by 1. If a result is halfway between two integers, float arithmetic would choose one of them at random.

    Args:
        operands: the real values of the op's inputs, which their grids can represent, as arrays of equal shape.

    Returns:
        None if this module does not know the arithmetic of the op for these types and scales.
    """
    tensors = [*map(op.input, range(len(op.inputs))), op.output]
    grids = [tensor.per_tensor_quantization for tensor in tensors if tensor.type in ("INT8", "UINT8")]
    known = [np.float32(grid[0]) for grid in grids if grid is not None]
    if len(known) < len(tensors) or op.name not in _SIGNS:
        return None
    *scales, scale = known
    counts = [np.rint(values / own).astype(np.int64) for values, own in zip(operands, scales, strict=True)]
    if op.name == "MUL":
        sums = np.rint(np.prod(counts, axis=0).astype(np.float32) * (scales[0] * scales[1] / scale))
    else:
        ratios = [float(own / scale) for own in scales]
        if max(ratios) >= 1 << _SUM_BITS:
            return None  # the fixed-point factor would have no fractional bit
        bits = _QUANTIZE_BITS if op.name == "QUANTIZE" else _SUM_BITS - math.frexp(max(ratios))[1] + 1
        factors = [sign * round(math.ldexp(ratio, bits)) for sign, ratio in zip(_SIGNS[op.name], ratios, strict=True)]
        sums = (np.tensordot(factors, counts, axes=1) + (1 << (bits - 1))) >> bits
    limits = grid_range(op.output)
    return None if limits is None else np.clip(from_levels(sums, float(scale), 0), *limits)
