"""BATCH_MATMUL of a sign with a constant ±alpha matrix -> FULLY_CONNECTED, which the next pass makes binary.

TensorFlow's converter leaves a dense layer so when its kernel is too large for it to fold.
"""

from __future__ import annotations

import numpy as np

from litebnn.graph import Graph, Op, builtin_op, constant
from litebnn.rewriting.each import each
from litebnn.rewriting.notes import Notes
from litebnn.rewriting.reasons import why_no_sign
from litebnn.rewriting.signs import find_way, holds_signs
from litebnn.rewriting.weights import binary_weights, weight_values


@each("BATCH_MATMUL")
def matmul_to_dense(graph: Graph, op: Op, notes: Notes) -> bool:
    if op.output.type != "FLOAT32" and find_way(graph, op) is not None:
        return notes.left_alone(op, f"there is no binary BATCH_MATMUL of {op.output.type}")
    if not holds_signs(graph, op.input(0)):
        return not notes.has_reasons(op) and notes.left_alone(op, why_no_sign(graph, op.input(0)))
    matrix = op.input(1)
    values = weight_values(matrix)
    if op.options.adj_x or len(matrix.shape) != 2 or values is None:
        return notes.left_alone(op, "it is no product with a constant float matrix")
    weights = values if op.options.adj_y else np.ascontiguousarray(values.T)
    parts = binary_weights(weights)
    if isinstance(parts, str):
        return notes.left_alone(op, parts)
    dense = builtin_op("FULLY_CONNECTED", [op.input(0), constant(matrix.name, weights), None], op.output)
    notes.became(op, graph.replace(op, dense))
    return True
