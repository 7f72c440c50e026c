"""Recognizes ops that compute x · scale + shift with one scale and shift for each channel, and finds neighbouring
float32 numbers."""

from __future__ import annotations

import numpy as np

from litebnn.analysis.match import SIGNS, floats
from litebnn.graph import Array, Op, Tensor, facts

# An op with more channels than this limit is not analysed. A damaged file may claim any number of channels, and arrays
# with a value for each channel could exhaust the memory.
_MOST_CHANNELS = 1 << 20
AFFINE = ("ADD", "DIV", "MUL", "NEG", "SUB")


def normal_level(values: Array, *, up: bool) -> Array:
    """Rounds subnormal float32 values to zero or to the least normal number, because runtimes may treat subnormals as
    zero."""
    least = np.finfo(np.float32).tiny
    rounded = np.where(values > 0 if up else values < 0, np.float32(least if up else -least), np.float32(0))
    return np.where(np.abs(values) < least, rounded, values)


def next_level(values: Array, *, up: bool) -> Array:
    """Returns the next float32 above (or below) each value. Subnormal numbers are skipped."""
    return normal_level(np.nextafter(values, np.float32(np.inf if up else -np.inf)), up=up)


def per_channel(tensor: Tensor | None, channels: int) -> Array | None:
    """Returns the values, float32 [channels], of a float constant that has the same value at all positions of a
    channel; None for other tensors.
    """
    array = floats(tensor)
    if array is None or channels < 1:
        return None
    if array.size == 1:
        return np.full(channels, array.reshape(-1)[0], np.float32)
    if array.size == channels and array.shape[-1] == channels:
        return array.reshape(-1)
    return None


def affine_of(op: Op, channels: int, *, left: bool) -> tuple[Array, Array] | None:
    """Returns scale and shift, both float64 [channels], of an op that computes x · scale + shift from one of its
    inputs, x."""
    if not 0 < channels <= _MOST_CHANNELS:
        return None
    if op.name == "NEG":
        return np.full(channels, -1.0), np.zeros(channels)
    if op.name not in AFFINE or op.inputs[0] is op.inputs[1]:
        return None
    values32 = per_channel(op.input(1 if left else 0), channels)
    if values32 is None or op.output.type != "FLOAT32":
        return None
    values, ones, zeros = values32.astype(np.float64), np.ones(channels), np.zeros(channels)
    if op.name == "MUL":
        return values, zeros
    if op.name == "ADD":
        return ones, values
    if op.name == "SUB":
        return (ones, -values) if left else (-ones, values)
    return (1.0 / values, zeros) if left and np.all(values != 0) else None


def works_on_channels(op: Op, x: Tensor) -> bool:
    """True if each element of the op's output depends only on the same element of `x` and on its channel."""
    if op.name in SIGNS:
        return True
    if op.output.dims != x.dims or op.output.type != "FLOAT32":
        return False
    return facts(op).clamp is not None or affine_of(op, x.channels, left=op.inputs[0] is x) is not None
