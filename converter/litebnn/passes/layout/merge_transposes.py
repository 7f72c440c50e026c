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
        graph.set_input(op, 0, first.input(0))
        graph.set_input(op, 1, constant(derived(op.output.name, "/order"), order.astype(np.int32)))
        return True
    if graph.is_output(op.output):
        return False
    graph.redirect(op.output, first.input(0))
    graph.remove(op)
    return True
