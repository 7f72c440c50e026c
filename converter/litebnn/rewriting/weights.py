"""What binary layers have in common: weights of ±alpha and a constant bias."""

from __future__ import annotations

import numpy as np

from litebnn.graph import Array, Tensor

_MAGNITUDE_TOLERANCE = 1e-5  # what rounding leaves of one alpha, relative


def binary_weights(weights: Array) -> tuple[Array, Array] | str:
    """Takes weights [O, ...] apart into ±1 and one magnitude for each output channel.

    A channel may be zero altogether (a batch norm with gamma 0); then its magnitude is 0.
    Returns:
        bool [O, ...], true where negative, and float32 [O]; or why the weights are not of this kind.
    """
    flat = np.abs(weights.reshape(weights.shape[0], -1))
    if flat.shape[1] == 0 or not np.all(np.isfinite(flat)):
        return "its weights are not finite"
    alpha = flat.max(axis=1)
    smallest = flat.min(axis=1)
    if np.any((smallest == 0) & (alpha > 0)):
        return "its weights contain zeros (ternary or pruned)"
    if not np.any(alpha > 0):
        return "its weights are all zero"
    if np.any(alpha - smallest > _MAGNITUDE_TOLERANCE * alpha):
        return "its weights are not ±alpha in each output channel"
    return np.signbit(weights), alpha.astype(np.float32)


def bias_values(bias: Tensor | None, channels: int) -> Array | None:
    """float32 [channels] of a layer's bias, zeros where it has none; None where it is not a constant."""
    if bias is None:
        return np.zeros(channels, np.float32)
    array = bias.array
    return array if array is not None and array.dtype == np.float32 and array.shape == (channels,) else None
