"""VALID CONV_2D of a sign padded with 0 -> SAME CONV_2D."""

from __future__ import annotations

from litebnn.contract import Padding
from litebnn.graph import Graph
from litebnn.rewriting.match import bits_of, uniform
from litebnn.rewriting.notes import Notes
from litebnn.rewriting.padding import is_same_padding


def absorb_zero_padding(graph: Graph, notes: Notes) -> bool:
    changed = False
    for op in graph.ops:
        if op.name != "CONV_2D" or op.options.padding != Padding.VALID:
            continue
        pad = graph.producer(op.input(0))
        if pad is None or pad.name not in ("PAD", "PADV2") or bits_of(graph, pad.input(0)) is None:
            continue
        amounts, value = pad.input(1).array, uniform(pad.optional(2)) if pad.name == "PADV2" else 0.0
        if amounts is None or value != 0.0:
            notes.left_alone(op, "the padding of its input is neither 0 nor ±1, or not constant")
            continue
        o = op.options
        if not is_same_padding(
            amounts,
            pad.input(0),
            (op.input(1).shape[1], op.input(1).shape[2]),
            (o.stride_h, o.stride_w),
            (o.dilation_h_factor, o.dilation_w_factor),
        ):
            notes.left_alone(op, f"zero padding {amounts[1:3].tolist()} is not SAME, and 0 is no ±1")
            continue
        o.padding = int(Padding.SAME)
        graph.set_input(op, 0, pad.input(0))
        changed = True
    return changed
