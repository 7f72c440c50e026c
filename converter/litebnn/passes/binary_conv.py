"""CONV_2D of a sign with a ±alpha filter -> LceBconv2d."""

from __future__ import annotations

import numpy as np

from litebnn.contract import BCONV_2D, BITS_PER_WORD, BConv2DOptions, Padding, PadValues, encode_options, pack_bits
from litebnn.flatbuffer import Array, Graph, Op, Tensor, constant
from litebnn.passes.common import bits_of, custom, derived, fused_activation, split_activation
from litebnn.passes.notes import Notes
from litebnn.passes.reasons import why_no_sign

# Kinds of convolution that no binary op computes, with the input that holds the data. The groups of a depthwise one
# have a single channel each.
_ALWAYS_FLOAT = {"DEPTHWISE_CONV_2D": 0, "CONV_3D": 0, "TRANSPOSE_CONV": 2}
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


def binarize_convs(graph: Graph, notes: Notes) -> bool:
    changed = False
    for op in list(graph.ops):
        if op.name in _ALWAYS_FLOAT:
            source = op.input(_ALWAYS_FLOAT[op.name])
            is_sign = bits_of(graph, source) is not None
            notes.left_alone(op, f"there is no binary {op.name}" if is_sign else why_no_sign(graph, source))
        if op.name != "CONV_2D" or op.output.type != "FLOAT32":
            continue
        reason = _convert(graph, op, notes)
        if reason is None:
            changed = True
        else:
            notes.left_alone(op, reason)
    return changed


def bias_values(bias: Tensor | None, channels: int) -> Array | None:
    """float32 [channels] of a layer's bias, zeros where it has none; None where it is not a constant."""
    if bias is None:
        return np.zeros(channels, np.float32)
    array = bias.array
    return array if array is not None and array.dtype == np.float32 and array.shape == (channels,) else None


def _convert(graph: Graph, op: Op, notes: Notes) -> str | None:
    """Replaces the op, or says why not."""
    bits = bits_of(graph, op.input(0))
    if bits is None:
        return why_no_sign(graph, op.input(0))
    weights = op.input(1).array
    if weights is None or weights.dtype != np.float32 or weights.ndim != 4:
        return "its weights are not a float constant"
    channels_out, _, _, channels = weights.shape
    channels_in = op.input(0).channels
    if channels < 1 or channels_in % channels or channels_out % (channels_in // channels):
        return f"its filter {list(weights.shape)} does not divide its {channels_in} input channels into groups"
    if channels != channels_in and channels % BITS_PER_WORD:
        return f"its groups have {channels} channels, not a multiple of {BITS_PER_WORD}"
    parts = binary_weights(weights)
    if isinstance(parts, str):
        return parts
    bias = bias_values(op.optional(2), channels_out)
    if bias is None:
        return "its bias is not a float constant"
    if fused_activation(op) is None:
        return "its fused activation is not one of ReLU, ReLU6, ReLU1"
    split_activation(graph, op)

    minus_one, alpha = parts
    options = BConv2DOptions(
        channels_in=channels_in,
        dilation_height_factor=op.options.dilationHFactor,
        dilation_width_factor=op.options.dilationWFactor,
        pad_values=PadValues.ZERO,
        # A 1×1 filter never reaches outside, and without zero padding the op can do more.
        padding=Padding.VALID if weights.shape[1:3] == (1, 1) else op.options.padding,
        stride_height=op.options.strideH,
        stride_width=op.options.strideW,
    )
    name = op.input(1).name
    inputs: list[Tensor | None] = [
        bits,
        constant(name, pack_bits(minus_one)),
        constant(derived(name, "/multiplier"), alpha),
        constant(derived(name, "/bias"), bias),
        None,
    ]
    bconv = Op(custom(BCONV_2D), inputs, [op.output], custom_options=encode_options(options))
    notes.made_binary(op, graph.replace(op, bconv))
    return None
