"""CONV_2D of a sign with a ±alpha filter -> LceBconv2d."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from litebnn.contract import BITS_PER_WORD, BConv2DOptions, PadValues
from litebnn.graph import Graph, Op, facts
from litebnn.rewriting.bconv import bconv_of, padded_options
from litebnn.rewriting.each import each
from litebnn.rewriting.match import bits_of, floats
from litebnn.rewriting.notes import Notes
from litebnn.rewriting.padding import layer_padding, without_zeros
from litebnn.rewriting.reasons import why_no_sign
from litebnn.rewriting.weights import binary_parts


@each("CONV_2D", "DEPTHWISE_CONV_2D", "CONV_3D")
def binarize_convs(graph: Graph, op: Op, notes: Notes) -> bool:
    source = op.input(facts(op).data)
    unpadded, zeros = without_zeros(graph, source)
    bits = bits_of(graph, unpadded)
    if bits is None:
        return notes.left_alone(op, why_no_sign(graph, source))
    if op.name != "CONV_2D":  # the groups of a depthwise convolution have a single channel each
        return notes.left_alone(op, f"there is no binary {op.name}")
    weights = floats(op.input(1))
    if weights is None or op.output.type != "FLOAT32":
        return notes.left_alone(op, "its weights are not a float constant")
    channels_out, height, width, channels = weights.shape
    channels_in = source.channels
    if channels < 1 or channels_in % channels or channels_out % (channels_in // channels):
        return notes.left_alone(
            op, f"its filter {list(weights.shape)} does not divide its {channels_in} input channels into groups"
        )
    if channels != channels_in and channels % BITS_PER_WORD:
        return notes.left_alone(op, f"its groups have {channels} channels, not a multiple of {BITS_PER_WORD}")
    own_zeros = layer_padding(op)
    if own_zeros is None and np.any(zeros):
        reason = "its input is padded, and how SAME pads it further depends on a size that is not known"
        return notes.left_alone(op, reason)
    parts = binary_parts(graph, op, weights)
    if isinstance(parts, str):
        return notes.left_alone(op, parts)
    options = BConv2DOptions(
        channels_in=channels_in,
        dilation_height_factor=op.options.dilation_h_factor,
        dilation_width_factor=op.options.dilation_w_factor,
        stride_height=op.options.stride_h,
        stride_width=op.options.stride_w,
    )
    if own_zeros is not None and np.any(zeros):
        options = padded_options(options, bits, (height, width), zeros + np.asarray(own_zeros), PadValues.ZERO)
    elif (height, width) != (1, 1):  # a 1×1 filter never reaches outside, and without zero padding the op can do more
        options = replace(options, padding=op.options.padding)
    bconv = bconv_of(bits, op.output, op.input(1).name, *parts, options)
    notes.made_binary(op, graph.replace(op, bconv))
    return True
