"""Weights that are computed from constants at every inference become constants, if the file does not grow.

TensorFlow's converter leaves the quantizer of a large kernel as ops, which can take two thirds of a network's time.
Folding them pays even for a model without binary layers.
"""

from __future__ import annotations

from litebnn.graph import Graph, Op
from litebnn.rules.build.notes import Notes, each
from litebnn.rules.build.ops import fold_computed


@each()
def fold_weights(graph: Graph, op: Op, notes: Notes) -> bool:
    return fold_computed(graph, op)
