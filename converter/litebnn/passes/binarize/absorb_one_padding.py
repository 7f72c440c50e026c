"""VALID LceBconv2d of bits padded with +1 -> SAME LceBconv2d that pads with ones."""

from __future__ import annotations

from dataclasses import replace

from litebnn.contract import LCE_BCONV_2D, Padding, PadValues
from litebnn.graph import Graph, Op
from litebnn.rewriting.bconv import bconv_options, set_bconv_options
from litebnn.rewriting.each import each
from litebnn.rewriting.match import uniform
from litebnn.rewriting.notes import Notes
from litebnn.rewriting.padding import is_same_padding


@each(LCE_BCONV_2D)
def absorb_one_padding(graph: Graph, op: Op, notes: Notes) -> bool:
    pad, options = graph.producer(op.input(0)), bconv_options(op)
    if pad is None or pad.name != "PADV2" or options.padding != Padding.VALID or uniform(pad.input(2)) != 0.0:
        return False
    amounts = pad.input(1).array
    assert amounts is not None
    strides = options.stride_height, options.stride_width
    dilations = options.dilation_height_factor, options.dilation_width_factor
    if not is_same_padding(amounts, pad.input(0), op.input(1).shape[1:3], strides, dilations):
        return notes.left_alone(op, f"one-padding {amounts[1:3].tolist()} is not SAME: kept as a PADV2 of the bits")
    set_bconv_options(op, replace(options, padding=Padding.SAME, pad_values=PadValues.ONE))
    graph.set_input(op, 0, pad.input(0))
    return True
