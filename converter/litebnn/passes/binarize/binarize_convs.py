"""CONV_2D of a sign with a ±alpha filter -> LceBconv2d."""

from __future__ import annotations

import numpy as np

from litebnn.contract import BITS_PER_WORD, BConv2DOptions, Padding, PadValues
from litebnn.graph import Graph, Op, facts
from litebnn.rewriting.bconv import bconv_of
from litebnn.rewriting.build import split_activation
from litebnn.rewriting.match import bits_of, fused_activation
from litebnn.rewriting.notes import Notes, rewrite_layers
from litebnn.rewriting.reasons import why_no_sign
from litebnn.rewriting.weights import bias_values, binary_weights

# No binary op computes these. The groups of a depthwise convolution have a single channel each.
_ALWAYS_FLOAT = ("DEPTHWISE_CONV_2D", "CONV_3D", "TRANSPOSE_CONV")


def binarize_convs(graph: Graph, notes: Notes) -> bool:
    for op in graph.ops:
        if op.name in _ALWAYS_FLOAT:
            source = op.input(facts(op).data)
            is_sign = bits_of(graph, source) is not None
            notes.left_alone(op, f"there is no binary {op.name}" if is_sign else why_no_sign(graph, source))
    return rewrite_layers(graph, notes, "CONV_2D", _convert)


def _convert(graph: Graph, op: Op, notes: Notes) -> str | None:
    """Replaces the op, or says why not."""
    bits = bits_of(graph, op.input(0))
    if bits is None:
        return why_no_sign(graph, op.input(0))
    weights = op.input(1).array
    if weights is None or weights.dtype != np.float32:
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
        dilation_height_factor=op.options.dilation_h_factor,
        dilation_width_factor=op.options.dilation_w_factor,
        pad_values=PadValues.ZERO,
        # A 1×1 filter never reaches outside, and without zero padding the op can do more.
        padding=Padding.VALID if weights.shape[1:3] == (1, 1) else op.options.padding,
        stride_height=op.options.stride_h,
        stride_width=op.options.stride_w,
    )
    bconv = bconv_of(bits, op.output, op.input(1).name, minus_one, alpha, bias, options)
    notes.made_binary(op, graph.replace(op, bconv))
    return None
