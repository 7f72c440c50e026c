"""TRANSPOSE of a TRANSPOSE -> one, or none."""

from __future__ import annotations

import numpy as np

from litebnn.graph import Graph, Op, constant
from litebnn.rewriting.build import derived
from litebnn.rewriting.each import each
from litebnn.rewriting.match import transpose_order
from litebnn.rewriting.notes import Notes


@each("TRANSPOSE")
def merge_transposes(graph: Graph, op: Op, notes: Notes) -> bool:
    first = graph.producer(op.input(0))
    if first is None or first.name != "TRANSPOSE":
        return False
    inner, outer = transpose_order(first), transpose_order(op)
    if inner is None or outer is None:
        return False
    order = inner[outer]
    if not np.array_equal(order, np.arange(order.size)):
        merged = constant(derived(op.output.name, "/order"), order.astype(np.int32))
        graph.replace(op, Op(op.code, [first.inputs[0], merged], [op.output], op.options))
        return True
    if graph.is_output(op.output):
        return False
    graph.redirect(op.output, first.input(0))
    graph.remove(op)
    return True
