"""A PAD or PADV2 with amounts of zero is removed."""

from __future__ import annotations

from litebnn.analysis.padding import PADS, pads_nothing
from litebnn.graph import Graph, Op
from litebnn.rules.build.notes import Notes, each


@each(*PADS)
def remove_empty_padding(graph: Graph, op: Op, notes: Notes) -> bool:
    return pads_nothing(op) and op.output.dims == op.input(0).dims and graph.bypass(op, op.input(0))
