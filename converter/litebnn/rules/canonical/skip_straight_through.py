"""The straight-through estimator (round(x) - x) + x of a rounding is removed. The sum is round(x), which readers then
read directly.

A clamp may follow, as in networks that round before they clamp. The sum of an estimator with few levels need not be
removed, because its values are known (`values.py`).
"""

from __future__ import annotations

from litebnn.analysis.transfers import TO_INTEGERS
from litebnn.analysis.values import values_of
from litebnn.build.notes import Notes, each
from litebnn.graph import Graph, Op


@each("ADD", "SUB", lowers="live ops and fused activations")
def skip_straight_through(graph: Graph, op: Op, notes: Notes) -> bool:
    function = values_of(graph, op.output)
    terms = [(tensor, factors.tolist()) for tensor, factors in function.linear_terms.items()]
    if len(terms) != 1 or terms[0][1] != [1.0] or function.values[0] != 0:
        return False
    rounded = graph.producer(terms[0][0], *TO_INTEGERS)
    return rounded is not None and rounded.output.dims == op.output.dims and graph.bypass(op, rounded.output)
