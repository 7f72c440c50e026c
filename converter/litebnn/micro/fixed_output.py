"""Finds integers with which binary layers compute their int8 outputs, for CPUs whose float arithmetic is slow.

A dot product takes only a few different values. Therefore the results with integers can be compared with the results in
floats for every possible value.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from litebnn.micro.pack import Geometry

Array = npt.NDArray[Any]

LOW, HIGH = -128, 127
# The changes to a channel's multiplier that are tried, in this order, after it is rounded to the nearest integer. The
# first change that makes all int8 outputs of the channel exact is kept.
CHANGES = (0, *(sign * size for size in range(1, 17) for sign in (-1, 1)))
# The limit for the number of channels times the number of possible dot products of a layer. Above this limit the search
# would take too long, and the layer computes its outputs with floats.
MOST_NUMBERS = 1 << 24


@dataclass(frozen=True)
class FixedOutput:
    """The fields `fixed_multiplier`, `fixed_bias` and `fixed_shift` of the C structure `litebnn_bconv2d`."""

    multiplier: npt.NDArray[np.int32]
    bias: npt.NDArray[np.int32]
    shift: npt.NDArray[np.uint8]


def int8_output(dots: Array, multiplier: Array, bias: Array, zero_point: int) -> Array:
    """The int8 outputs [dots, channels] for all given dot products, computed in float32 as the kernels do."""
    values = dots[:, None].astype(np.float32) * multiplier + bias
    values = np.clip(values, np.float32(LOW - zero_point), np.float32(HIGH - zero_point))
    half = np.nextafter(np.float32(0.5), np.float32(0))
    rounded: Array = (values + np.where(values < 0, -half, half)).astype(np.int64)
    return rounded + zero_point


def fixed_output(
    geometry: Geometry, multiplier: Array, bias: Array, clamp: tuple[int, int], zero_point: int
) -> FixedOutput | None:
    """Finds 32-bit integers that give the same outputs as floats for all possible dot products; None if there are no
    such integers.

    Args:
        multiplier, bias: float32 [channels], already divided by the output's scale. clamp: the fused activation, as the
        lowest and the highest dot product.
    """
    # Padding with zeros changes the number of products by one or more, so dot products may be even and odd. Without it,
    # the dot products of a layer are all even or all odd.
    step = 1 if geometry.zero_padding else 2
    dots = np.unique(np.clip(np.arange(-geometry.depth, geometry.depth + 1, step), *clamp))
    if dots.size * multiplier.size > MOST_NUMBERS:
        return None
    largest = np.abs(dots).max() * np.abs(multiplier.astype(np.float64)) + np.abs(bias) + HIGH - LOW
    if not np.all(np.isfinite(largest)):
        return None
    # One of the 32 bits is left unused, so that multipliers and biases still fit after the search for exact outputs has
    # changed them.
    shift = np.minimum(29 - np.frexp(largest)[1], 28).astype(np.int64)
    if np.any(shift < 1):
        return None
    expected = int8_output(dots, multiplier, bias, zero_point)
    nearest = np.rint(np.ldexp(multiplier.astype(np.float64), shift)).astype(np.int64)
    found, biases = np.zeros(multiplier.size, bool), np.zeros(multiplier.size, np.int64)
    multipliers = nearest.copy()
    for change in CHANGES:
        open_ = np.flatnonzero(~found)
        if not open_.size:
            break
        low, high = _bias_range(dots, nearest[open_] + change, expected[:, open_], shift[open_])
        fits = low <= high
        found[open_[fits]] = True
        biases[open_[fits]] = ((low + high) // 2)[fits]
        multipliers[open_[fits]] += change
    products = np.abs(dots).max() * np.abs(multipliers) + np.abs(biases)
    if not found.all() or products.max() > np.iinfo(np.int32).max:
        return None
    return FixedOutput(multipliers.astype(np.int32), biases.astype(np.int32), shift.astype(np.uint8))


def _bias_range(dots: Array, multipliers: Array, expected: Array, shift: Array) -> tuple[Array, Array]:
    """For each channel, the lowest and the highest integer bias that give all `expected` outputs. An output is (dot ·
    multiplier + bias) >> shift, clamped to int8."""
    products = dots[:, None] * multipliers
    far = np.int64(1) << 40
    low = np.where(expected > LOW, (expected << shift) - products, -far).max(axis=0)
    high = np.where(expected < HIGH, ((expected + 1) << shift) - 1 - products, far).min(axis=0)
    # If all outputs of a channel must be -128, its bias has no lower bound; if all must be 127, it has no upper bound.
    # A missing lower bound is set to the upper bound minus 1, a missing upper bound to the lower bound plus 1.
    low, high = np.where(low == -far, high - 1, low), np.where(high == far, low + 1, high)
    return low, high
