"""Moves an activation from after a scale and a bias to before them."""

from __future__ import annotations

import numpy as np

from litebnn.contract import ACTIVATION_RANGES, Activation
from litebnn.graph import Array


def clamp_as_fused(
    multiplier: Array, bias: Array, dot_max: int, before: Activation, activation: Activation
) -> tuple[Activation, Array, Array, Array] | None:
    """Rewrites activation(before(dot) · multiplier + bias) to the form before(dot) · multiplier + bias.

    Args:
        multiplier, bias: float32 [O].
        dot_max: the largest magnitude of the dot product.
    Returns:
        The activation on the dot product, multiplier, bias, and bool [O], true where the filter must be negated. None
        if no exact form exists.
    """
    low, high = ACTIVATION_RANGES[activation]
    dot_low, dot_high = (float(np.clip(bound, -dot_max, dot_max)) for bound in ACTIVATION_RANGES[before])
    fixed = multiplier == 0
    bias = np.where(fixed, np.clip(bias, low, high), bias).astype(np.float32)
    ends = [dot * multiplier.astype(np.float64) + bias for dot in (dot_low, dot_high)]
    binds_low = np.any(np.minimum(*ends)[~fixed] < low)
    binds_high = np.any(np.maximum(*ends)[~fixed] > high)
    keep = np.zeros(multiplier.shape, np.bool_)
    if not binds_low and not binds_high:
        return before, multiplier, bias, keep
    if np.any(bias[~fixed] != 0):
        return None
    unit = bool(np.all(np.abs(multiplier[~fixed]) == 1))
    if before == Activation.RELU and activation == Activation.RELU6 and unit and np.all(multiplier >= 0):
        return Activation.RELU6, multiplier, bias, keep
    if before != Activation.NONE:
        return None
    magnitude = np.abs(multiplier)
    if low == 0 and not binds_high:
        return Activation.RELU, magnitude, bias, multiplier < 0
    return (activation, magnitude, bias, multiplier < 0) if unit else None
