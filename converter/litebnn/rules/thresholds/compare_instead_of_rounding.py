"""ROUND, FLOOR or CEIL that takes two values -> a select of these values by a comparison."""

from __future__ import annotations

import numpy as np

from litebnn.analysis.signs import find_two_levels
from litebnn.build.notes import Notes, each
from litebnn.build.ops import as_float
from litebnn.graph import Graph, Op, builtin_op, constant, derived, like


@each("ROUND", "FLOOR", "CEIL")
def compare_instead_of_rounding(graph: Graph, op: Op, notes: Notes) -> bool:
    found = find_two_levels(graph, op.output)
    if found is None or found.x is None or found.x.dims != op.output.dims:
        return False
    name = op.output.name
    level, low, high = (
        constant(derived(name, suffix), np.asarray(value, np.float32))
        for suffix, value in (("/threshold", found.edges[0]), ("/low", found.low), ("/high", found.high))
    )
    condition = like(op.output, derived(name, "/condition"), type="BOOL")
    x = as_float(graph, found.x, before=op)
    graph.insert(builtin_op("GREATER_EQUAL", [x, level], condition), before=op)
    graph.replace(op, builtin_op("SELECT_V2", [condition, high, low], op.output))
    return True
