"""Weights that a layer computes from constants at every inference -> constants, where the file does not grow by it.

TensorFlow's converter leaves the quantizer of a large kernel as ops: two thirds of the time of a network whose dense
layers are large. That is worth doing for a model of which no layer is binary, too.
"""

from __future__ import annotations

from litebnn.graph import Graph, Op
from litebnn.rewriting.each import each
from litebnn.rewriting.notes import Notes
from litebnn.rewriting.weights import fold_computed


@each()
def fold_weights(graph: Graph, op: Op, notes: Notes) -> bool:
    return fold_computed(graph, op)
