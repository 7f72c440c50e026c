"""A concatenation of channels of concatenations becomes one concatenation of all parts."""

from __future__ import annotations

from litebnn.graph import Graph, Op
from litebnn.rules.build.notes import Notes, each
from litebnn.rules.build.ops import MOST_PARTS, concatenation_of, parts_of


@each("CONCATENATION")
def flatten_concatenations(graph: Graph, op: Op, notes: Notes) -> bool:
    parts = parts_of(graph, op.output)
    flat = [inner for part in parts for inner in parts_of(graph, part) or [part]]
    if not len(parts) < len(flat) <= MOST_PARTS:
        return False
    graph.replace(op, concatenation_of(flat, op.output))
    return True
