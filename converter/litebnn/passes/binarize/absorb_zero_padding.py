"""VALID CONV_2D of a sign padded with 0 -> SAME CONV_2D."""

from __future__ import annotations

from litebnn.contract import Padding
from litebnn.graph import Graph, Op
from litebnn.rewriting.each import each
from litebnn.rewriting.match import bits_of, uniform
from litebnn.rewriting.notes import Notes
from litebnn.rewriting.padding import is_same_padding


@each("CONV_2D")
def absorb_zero_padding(graph: Graph, op: Op, notes: Notes) -> bool:
    pad, o = graph.producer(op.input(0)), op.options
    if (
        o.padding != Padding.VALID
        or pad is None
        or pad.name not in ("PAD", "PADV2")
        or bits_of(graph, pad.input(0)) is None
    ):
        return False
    amounts, value = pad.input(1).array, uniform(pad.optional(2)) if pad.name == "PADV2" else 0.0
    if amounts is None or value != 0.0:
        return notes.left_alone(op, "the padding of its input is neither 0 nor ±1, or not constant")
    strides, dilations = (o.stride_h, o.stride_w), (o.dilation_h_factor, o.dilation_w_factor)
    if not is_same_padding(amounts, pad.input(0), op.input(1).shape[1:3], strides, dilations):
        return notes.left_alone(op, f"zero padding {amounts[1:3].tolist()} is not SAME, and 0 is no ±1")
    o.padding = int(Padding.SAME)
    graph.set_input(op, 0, pad.input(0))
    return True
