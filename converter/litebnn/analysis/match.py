"""Has small functions about tensors and ops that several rules need, such as the value of a constant."""

from __future__ import annotations

import numpy as np

from litebnn.analysis.quantization import from_levels
from litebnn.contract import ACTIVATION_RANGES, LCE_DEQUANTIZE, LCE_QUANTIZE, Activation
from litebnn.graph import Array, Graph, Op, Tensor, facts

# THRESHOLD is the name of an op that exists only while the converter runs. The op packs the signs of a tensor, with a
# threshold for each channel.
THRESHOLD = "THRESHOLD"
SIGNS = (LCE_QUANTIZE, THRESHOLD)


def bits_of(graph: Graph, tensor: Tensor | None) -> Tensor | None:
    """If an `LceDequantize` computes `tensor`, returns the packed tensor that it unpacks; otherwise None."""
    op = graph.producer(tensor, LCE_DEQUANTIZE)
    return None if op is None else op.input(0)


def floats(tensor: Tensor | None) -> Array | None:
    """Returns the values of a float32 constant."""
    array = None if tensor is None else tensor.array
    return array if array is not None and array.dtype == np.float32 else None


def uniform(tensor: Tensor | None) -> float | None:
    """Returns the value of a constant whose elements are all equal, dequantized if the constant is quantized."""
    array = None if tensor is None else tensor.array
    if tensor is None or array is None or array.size == 0 or array.dtype.kind not in "fiub":
        return None
    first = array.reshape(-1)[0]
    if not np.all(array == first):
        return None
    if tensor.quantization is not None and tensor.type in ("INT8", "UINT8", "INT16"):
        scaled = tensor.per_tensor_quantization
        return None if scaled is None else float(from_levels(first, *scaled))
    return float(first)


def number_of(graph: Graph, tensor: Tensor | None) -> float | None:
    """Returns the value of a tensor whose elements are all equal. The size of such a tensor may depend on the batch."""
    while (op := graph.producer(tensor, "BROADCAST_TO", "FILL")) is not None:
        tensor = op.inputs[int(op.name == "FILL")]
    return uniform(tensor)


def are_equal(left: Tensor | None, right: Tensor | None) -> bool:
    """True if two tensors are the same, or constants that are broadcast to the same."""
    if left is None or right is None or left is right:
        return left is right
    number, one, other = uniform(right), left.array, right.array
    if number is not None:
        return uniform(left) == number
    if one is None or other is None:
        return False
    rank = max(one.ndim, other.ndim)
    left_values, right_values = (each.reshape(wide_dims(each.shape, rank)) for each in (one, other))
    return np.array_equal(left_values, right_values)


def wide_dims(dims: tuple[int, ...], rank: int) -> tuple[int, ...]:
    """Returns the dimensions of a tensor as one of at least this rank, as broadcasting sees it."""
    return (*(1,) * (rank - len(dims)), *dims)


def times_repeated(dims: tuple[int, ...], larger: tuple[int, ...]) -> list[int] | None:
    """If a tensor is broadcast to a larger one, returns the number of repetitions along each axis; None if it cannot
    be broadcast.
    """
    sizes = list(zip(dims, larger, strict=False))
    if len(dims) != len(larger) or any(small != large and (small != 1 or large < 1) for small, large in sizes):
        return None
    return [1 if small == large else large for small, large in sizes]


def is_broadcast(factor: Tensor, whole: Tensor) -> bool:
    """True if a computed float tensor is smaller than the product `whole` of which it is a factor."""
    if factor.is_constant or factor.type != "FLOAT32" or len(factor.dims) > len(whole.dims):
        return False
    return wide_dims(factor.dims, len(whole.dims)) != whole.dims


def broadcast_factor(op: Op) -> int | None:
    """Returns the index of the factor of a MUL, or of the divisor of a DIV, that is computed and broadcast; None for
    other ops.
    """
    if op.name not in ("MUL", "DIV") or fused_activation(op) != 0:
        return None
    for index in (1, 0) if op.name == "MUL" else (1,):
        others = op.input(1 - index)
        if is_broadcast(op.input(index), op.output) and others.dims == op.output.dims and not others.is_constant:
            return index
    return None


def first_computed(op: Op) -> Tensor | None:
    """Returns the first input of an op that is not a constant."""
    return next((tensor for tensor in op.inputs if tensor is not None and not tensor.is_constant), None)


def fused_activation(op: Op) -> Activation | None:
    """Returns the op's fused activation; None for activations that no binary op has (tanh, sign bit)."""
    value = getattr(op.options, "fused_activation_function", Activation.NONE)
    return Activation(value) if value in Activation._value2member_map_ else None


def output_limits(op: Op) -> tuple[float, float]:
    """Returns the limits to which an op or its fused activation clamps the output; infinite ones if neither does."""
    return facts(op).clamp_limits or ACTIVATION_RANGES[fused_activation(op) or Activation.NONE]


def transpose_order(op: Op) -> Array | None:
    """Returns the order int [rank] of a TRANSPOSE, if the order is a constant and a valid permutation of the axes."""
    order, rank = op.input(1).array, len(op.output.dims)
    if order is None or len(op.input(0).dims) != rank or sorted(order.reshape(-1)) != [*range(rank)]:
        return None
    return order.reshape(-1)
