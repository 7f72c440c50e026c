"""A VALID LceBconv2d that reads bits padded with +1 by a PADV2 is changed to pad with +1 itself."""

from __future__ import annotations

from litebnn.analysis.padding import constant_padding
from litebnn.contract import LCE_BCONV_2D, Padding, PadValues
from litebnn.graph import Graph, Op
from litebnn.rules.build.bconv import bconv_options, padded_options, set_bconv_options
from litebnn.rules.build.notes import Notes, each


@each(LCE_BCONV_2D)
def absorb_one_padding(graph: Graph, op: Op, notes: Notes) -> bool:
    pad, options = graph.producer(op.input(0), "PADV2"), bconv_options(op)
    padding = None if pad is None else constant_padding(pad)
    if pad is None or padding is None or not padding.is_spatial or padding.value != 0.0:
        return False
    if options.padding != Padding.VALID:
        return False
    taps, amounts = op.input(1).shape[1:3], padding.amounts[1:3]
    set_bconv_options(op, padded_options(options, pad.input(0), taps, amounts, PadValues.ONE))
    graph.set_input(op, 0, pad.input(0))
    return True
