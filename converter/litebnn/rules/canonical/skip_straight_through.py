"""The straight-through estimator (round(x) - x) + x of a rounding is removed. The sum is round(x), which readers then
read directly.

A clamp may follow, as in networks that round before they clamp. The sum of an estimator with few levels need not be
removed, because its values are known (`values.py`).
"""

from __future__ import annotations

from litebnn.analysis.match import fused_activation
from litebnn.analysis.transfers import TO_INTEGERS, TRANSFER
from litebnn.analysis.values import values_of
from litebnn.graph import Graph, Op, builtin_op
from litebnn.rules.build.notes import Notes, each
from litebnn.rules.build.ops import OP_OF_ACTIVATION


@each("ADD", "SUB")
def skip_straight_through(graph: Graph, op: Op, notes: Notes) -> bool:
    parts, activation = [values_of(graph, op.input(index)) for index in (0, 1)], fused_activation(op)
    total = None if any(len(part.edges) for part in parts) else TRANSFER[op.name](op, parts)
    if total is None or activation is None or len(total.linear_terms) != 1 or total.values[0] != 0:
        return False
    [(tensor, [factor])] = total.linear_terms.items()
    rounding = graph.producer(tensor, *TO_INTEGERS)
    if rounding is None or factor != 1 or rounding.output.dims != op.output.dims:
        return False
    if not activation:
        return graph.bypass(op, tensor)
    graph.replace(op, builtin_op(OP_OF_ACTIVATION[activation], [tensor], op.output))
    return True
