"""A ROUND, FLOOR or CEIL whose results can only be two values becomes a comparison and a SELECT of these two values."""

from __future__ import annotations

from litebnn.analysis.signs import find_two_levels
from litebnn.build.notes import Notes, each
from litebnn.build.ops import compared, select_op
from litebnn.graph import Graph, Op


@each("ROUND", "FLOOR", "CEIL", lowers="roundings")
def compare_instead_of_rounding(graph: Graph, op: Op, notes: Notes) -> bool:
    found = find_two_levels(graph, op.output)
    if found is None or found.x is None or found.x.dims != op.output.dims:
        return False
    condition = compared(graph, found.x, float(found.edges[0]), op.output.name, before=op)
    low, high = found.values
    graph.replace(op, select_op(condition, high, low, op.output))
    return True
