"""Weights that are computed from constants (exporters leave the sign of a large kernel as ops) -> constants.

Only weights and biases of layers whose input is a sign are folded: for others the file would grow for nothing.
"""

from __future__ import annotations

from litebnn.graph import Graph, Op, constant
from litebnn.rewriting.constants import evaluate, is_computed_from_constants
from litebnn.rewriting.each import each
from litebnn.rewriting.match import bits_of
from litebnn.rewriting.notes import Notes


@each("CONV_2D", "FULLY_CONNECTED")
def fold_weights(graph: Graph, op: Op, notes: Notes) -> bool:
    if bits_of(graph, op.inputs[0]) is None:
        return False
    changed = False
    for index in range(1, len(op.inputs)):
        tensor = op.inputs[index]
        if tensor is None or tensor.is_constant or not is_computed_from_constants(graph, tensor):
            continue
        value = evaluate(graph, tensor)
        if value is not None and value.shape == tensor.shape:
            graph.set_input(op, index, constant(tensor.name, value))
            changed = True
    return changed
