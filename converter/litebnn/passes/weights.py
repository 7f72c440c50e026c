"""What binary layers have in common: weights of ±alpha, a constant bias, and the LceBconv2d that comes of them."""

from __future__ import annotations

import numpy as np

from litebnn.contract import BCONV_2D, BConv2DOptions, encode_options, pack_bits
from litebnn.flatbuffer import Array, Op, Tensor, constant
from litebnn.passes.common import custom, derived

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


def bconv_of(
    bits: Tensor, output: Tensor, name: str, minus_one: Array, alpha: Array, bias: Array, options: BConv2DOptions
) -> Op:
    """The LceBconv2d of a filter.

    Args:
        name: the name of the source's weights, from which those of the constants are derived.
        minus_one: bool [O, H, W, I], true where the filter is negative.
        alpha: float32 [O], its magnitude.
        bias: float32 [O].
    """
    inputs: list[Tensor | None] = [
        bits,
        constant(name, pack_bits(minus_one)),
        constant(derived(name, "/multiplier"), alpha),
        constant(derived(name, "/bias"), bias),
        None,
    ]
    return Op(custom(BCONV_2D), inputs, [output], custom_options=encode_options(options))
