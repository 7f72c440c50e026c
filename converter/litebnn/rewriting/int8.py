"""What the int8 passes share: quantization parameters and the arithmetic of QUANTIZE."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from litebnn.graph import NUMPY_TYPES, Array, Graph, Op, Quantization, Tensor, builtin_op, constant

INT8_MIN, INT8_MAX = -128, 127
# How many bits a level of the types has that NumPy lacks.
NARROW_TYPES = {"INT4": 4, "INT2": 2}
_GRIDS = ("INT8", "UINT8", "INT16")
# How far the middle between two levels, computed in float32, may be from where rounding turns.
_MOST_ULPS = 4


def parameters(scale: Any, zero_point: Any = 0, axis: int = 0) -> Quantization:
    """A grid with one scale and zero point, or one for each channel along `axis`."""
    scales = np.atleast_1d(np.asarray(scale, np.float32))
    return Quantization(scales, np.broadcast_to(np.asarray(zero_point, np.int64), scales.shape).copy(), axis)


def parameters_of_range(low: float, high: float, least_scale: float = 0.0) -> Quantization:
    """int8 parameters that cover [low, high] and zero."""
    low, high = min(low, 0.0), max(high, 0.0)
    scale = max((high - low) / (INT8_MAX - INT8_MIN), least_scale, float(np.finfo(np.float32).tiny))
    zero_point = int(np.clip(round(INT8_MIN - low / scale), INT8_MIN, INT8_MAX))
    return parameters(scale, zero_point)


def round_half_away(values: Array) -> Array:
    rounded: Array = np.sign(values) * np.floor(np.abs(values) + 0.5)
    return rounded


def quantized(values: Array, scale: Any, zero_point: Any) -> Array:
    """float -> int8, as QUANTIZE does."""
    levels = round_half_away(values.astype(np.float64) / scale) + zero_point
    clipped: Array = np.clip(levels, INT8_MIN, INT8_MAX).astype(np.int8)
    return clipped


def _along_axis(values: Array, rank: int, axis: int) -> Array:
    """[n] values, in a shape that broadcasts along `axis` of a tensor of that rank; one value alone does as it is."""
    return values if values.size == 1 else values.reshape([-1 if i == axis else 1 for i in range(rank)])


def pack_levels(levels: Array, bits: int) -> Array:
    """uint8 [bytes]: signed levels as TFLite packs INT4 and INT2, the first in the lowest bits of its byte."""
    each = 8 // bits
    codes = (levels.reshape(-1) & ((1 << bits) - 1)).astype(np.uint8)
    rows = np.concatenate([codes, np.zeros(-codes.size % each, np.uint8)]).reshape(-1, each)
    packed: Array = np.bitwise_or.reduce(rows << (bits * np.arange(each, dtype=np.uint8)), axis=1)
    return packed


def _stored_levels(tensor: Tensor) -> Array | None:
    """The levels of a quantized constant, those of INT4 and INT2 as int8; None for one that has none."""
    bits, stored = NARROW_TYPES.get(tensor.type, 0), tensor.buffer.data
    if not bits or not tensor.is_constant or stored is None or tensor.is_sparse or tensor.is_variable:
        return tensor.array
    count = math.prod(tensor.shape)
    if stored.size * 8 < count * bits or min(tensor.shape, default=0) < 0:
        return None
    high = np.arange(8 - bits, -1, -bits, dtype=np.uint8)  # how far to the left a level's bits are those of an int8
    levels = (stored.view(np.uint8)[:, None] << high).view(np.int8) >> (8 - bits)
    return levels.reshape(-1)[:count].reshape(tensor.shape)


def dequantized(tensor: Tensor) -> Array | None:
    """float32 values of a quantized constant, with one or several scales."""
    array, q = _stored_levels(tensor), tensor.quantization
    if array is None or q is None or array.dtype.kind not in "iu":
        return None
    scale = _along_axis(q.scale.astype(np.float64), array.ndim, q.axis)
    zero = _along_axis(q.zero_point.astype(np.float64), array.ndim, q.axis)
    return ((array.astype(np.float64) - zero) * scale).astype(np.float32).reshape(array.shape)


def bias_scale(source: Tensor | None, weights: Tensor | None, shape: tuple[int, ...]) -> Array | None:
    """float64 [1] or [channels]: what one count of an int32 bias of that shape is worth, where its layer is int8."""
    grid, q = source and source.per_tensor_quantization, weights and weights.quantization
    if not grid or not q or (q.scale.size > 1 and q.scale.shape != shape[-1:]):
        return None
    scale: Array = q.scale.astype(np.float64) * grid[0]
    return scale


def is_int8(tensor: Tensor | None) -> bool:
    return tensor is not None and tensor.type == "INT8" and tensor.per_tensor_quantization is not None


def is_quantized(tensor: Tensor) -> bool:
    """Whether the tensor has one grid, of int8 or of another type."""
    return grid_range(tensor) is not None


def same_parameters(left: Tensor, right: Tensor) -> bool:
    return left.type == right.type and left.per_tensor_quantization == right.per_tensor_quantization is not None


def on_grid(values: Array, tensor: Tensor) -> Array | None:
    """What numbers become in a tensor: themselves where it is float, the nearest of its grid where it has one."""
    if tensor.type == "FLOAT32":
        return values
    limits = grid_range(tensor)
    if limits is None:
        return None
    scale, zero_point = tensor.per_tensor_quantization or (1.0, 0)
    levels = round_half_away(values.astype(np.float32) / np.float32(scale)) + zero_point
    return np.clip(from_levels(levels, scale, zero_point), *limits)


def from_levels(levels: Any, scale: float, zero_point: int) -> Array:
    """float32 values of levels, computed as DEQUANTIZE does: 127 times the float nearest to 1/127 is 1."""
    values: Array = (np.asarray(levels, np.float32) - np.float32(zero_point)) * np.float32(scale)
    return values


def grid_range(tensor: Tensor) -> tuple[float, float] | None:
    """The lowest and the highest value of a tensor with one grid, None for others."""
    numbers = numbers_of_grid(tensor)
    return None if numbers is None else (float(numbers[0]), float(numbers[-1]))


def ends_within(tensor: Tensor, low: float, high: float) -> bool:
    """Whether what is quantized to the tensor's grid stays between two numbers, but for rounding, by that alone."""
    limits, grid = grid_range(tensor), tensor.per_tensor_quantization
    return (
        limits is not None and grid is not None and low - grid[0] / 2 <= limits[0] and limits[1] <= high + grid[0] / 2
    )


def numbers_of_grid(tensor: Tensor) -> Array | None:
    """float32 [levels], ascending: all numbers that a tensor with one grid can hold, None for others."""
    grid = tensor.per_tensor_quantization
    if grid is None or tensor.type not in _GRIDS:
        return None
    return _numbers(tensor.type, *grid)


# A network has few grids, each of which is asked for many times.
@functools.lru_cache(maxsize=64)
def _numbers(type_name: str, scale: float, zero_point: int) -> Array:
    limits = np.iinfo(NUMPY_TYPES[type_name])
    numbers = from_levels(np.arange(limits.min, limits.max + 1), scale, zero_point)
    numbers.flags.writeable = False
    return numbers


def step_of(tensor: Tensor) -> float:
    """How far apart the levels of a tensor with one grid are, 0 for others."""
    grid = tensor.per_tensor_quantization if is_quantized(tensor) else None
    return 0.0 if grid is None else grid[0]


def first_rounded_to(numbers: Array, tensor: Tensor) -> Array:
    """float32 [n]: the least floats that become these numbers of a tensor's grid, or greater ones, in that tensor."""

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
    """float32 [n]: the least numbers of a tensor's grid that are not below these; themselves where it has no grid."""
    levels = numbers_of_grid(tensor)
    if levels is None:
        return numbers
    nearest: Array = levels[np.minimum(np.searchsorted(levels, numbers), len(levels) - 1)]
    return nearest


def as_compared(values: Array, scale: float) -> Array:
    """What the runtime compares for numbers of an int8 tensor: fixed-point numbers with 8 bits behind the point."""
    counts = np.rint(values.astype(np.float64) / np.float32(scale)).astype(np.int64) << 8
    fraction, exponent = np.frexp(np.float64(np.float32(scale)))
    product = counts * int(round_half_away(fraction * 2**31))
    high = (np.abs(product) + np.where(product < 0, (1 << 30) - 1, 1 << 30)) >> 31
    scaled: Array = round_half_away(np.where(product < 0, -high, high) * 2.0**exponent)
    return scaled


def lowest_value(graph: Graph, tensor: Tensor) -> float:
    """The lowest value that a tensor can have as far as its grid says, or that of which it is the DEQUANTIZE."""
    op = graph.producer(tensor)
    source = op.input(0) if op is not None and op.name == "DEQUANTIZE" else tensor
    limits = grid_range(source)
    return -np.inf if limits is None else limits[0]


def int8_source(graph: Graph, tensor: Tensor | None) -> Tensor | None:
    """The int8 tensor that `tensor` is the DEQUANTIZE of."""
    op = graph.producer(tensor)
    return op.input(0) if op is not None and op.name == "DEQUANTIZE" and is_int8(op.input(0)) else None


def int8_results(graph: Graph, tensor: Tensor) -> list[Op]:
    """The QUANTIZE ops that read `tensor`, where only such with the same int8 result do."""
    if graph.is_output(tensor):
        return []
    consumers = graph.consumers(tensor)
    if not consumers or any(c.name != "QUANTIZE" or not is_int8(c.output) for c in consumers):
        return []
    return consumers if all(same_parameters(c.output, consumers[0].output) for c in consumers) else []


def take_results(graph: Graph, op: Op, quantizers: list[Op]) -> None:
    """`op`, which writes the first quantizer's output by now, stands for all of them."""
    result = quantizers[0].output
    for quantizer in quantizers:
        graph.redirect(quantizer.output, result)
        graph.remove(quantizer)
    graph.set_output(op, result)


def quantize_op(source: Tensor, result: Tensor) -> Op:
    return builtin_op("QUANTIZE", [source], result)


def dequantize_op(source: Tensor, result: Tensor) -> Op:
    return builtin_op("DEQUANTIZE", [source], result, version=2)


def int8_constant(name: str, values: Array, scale: Any, zero_point: Any = 0, axis: int = 0) -> Tensor:
    """An int8 constant of float values."""
    divisor = _along_axis(np.atleast_1d(np.asarray(scale, np.float64)), values.ndim, axis)
    tensor = constant(name, quantized(values, divisor, zero_point).reshape(values.shape))
    tensor.quantization = parameters(scale, zero_point, axis)
    return tensor
