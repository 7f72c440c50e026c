"""LceQuantize(DEQUANTIZE(x)) -> LceQuantize(x), which compares x with the zero point."""

from __future__ import annotations

from litebnn.analysis.grids import int8_source
from litebnn.build.notes import Notes, each
from litebnn.contract import LCE_QUANTIZE
from litebnn.graph import Graph, Op


@each(LCE_QUANTIZE)
def read_int8_signs(graph: Graph, op: Op, notes: Notes) -> bool:
    source = int8_source(graph, op.input(0))
    if source is None:
        return False
    graph.set_input(op, 0, source)
    return True
