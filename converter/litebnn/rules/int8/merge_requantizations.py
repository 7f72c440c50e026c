"""QUANTIZE of a DEQUANTIZE -> no op if the parameters are equal, else one QUANTIZE from int8 to int8."""

from __future__ import annotations

from litebnn.analysis.grids import int8_source, is_int8, same_parameters
from litebnn.build.notes import Notes, each
from litebnn.graph import Graph, Op


@each("QUANTIZE")
def merge_requantizations(graph: Graph, op: Op, notes: Notes) -> bool:
    source = int8_source(graph, op.input(0))
    if source is None or not is_int8(op.output):
        return False
    if not (same_parameters(source, op.output) and graph.bypass(op, source)):
        graph.set_input(op, 0, source)
    return True
