"""Replaces inputs of ops, if they are computed from constants, by new constants."""

from __future__ import annotations

from litebnn.analysis.constants import evaluate
from litebnn.analysis.weights import computed_weights
from litebnn.graph import Graph, Op, constant


def fold_input(graph: Graph, op: Op, index: int) -> bool:
    """Replaces an op's input by a constant if its value can be computed."""
    value = evaluate(graph, op.input(index))
    if value is None:
        return False
    graph.set_input(op, index, constant(op.input(index).name, value))
    return True


def fold_computed(graph: Graph, layer: Op) -> bool:
    """Replaces weights and a bias that ops compute from constants by their values, if the file does not grow."""
    folded = [fold_input(graph, layer, index) for index in computed_weights(graph, layer)]
    return any(folded)
