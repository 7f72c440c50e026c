"""LceQuantize(DEQUANTIZE(x)) -> LceQuantize(x): x < zero point is what the sign asks."""

from __future__ import annotations

from litebnn.contract import QUANTIZE
from litebnn.graph import Graph
from litebnn.rewriting.int8 import int8_source
from litebnn.rewriting.notes import Notes


def read_int8_signs(graph: Graph, notes: Notes) -> bool:
    changed = False
    for op in graph.ops:
        source = int8_source(graph, op.input(0)) if op.name == QUANTIZE else None
        if source is not None:
            graph.set_input(op, 0, source)
            changed = True
    return changed
