"""BATCH_MATMUL of a sign with a constant ±alpha matrix -> FULLY_CONNECTED, which the next pass makes binary."""

from __future__ import annotations

from litebnn.graph import Graph, Op
from litebnn.rewriting.each import each
from litebnn.rewriting.notes import Notes
from litebnn.rewriting.reasons import why_no_sign
from litebnn.rewriting.signs import find_path_to_layer, holds_signs
from litebnn.rewriting.weights import product_to_dense


@each("BATCH_MATMUL")
def matmul_to_dense(graph: Graph, op: Op, notes: Notes) -> bool:
    if op.output.type != "FLOAT32" and find_path_to_layer(graph, op) is not None:
        return notes.left_alone(op, f"there is no binary BATCH_MATMUL of {op.output.type}")
    if not holds_signs(graph, op.input(0)):
        return not notes.has_reasons(op) and notes.left_alone(op, why_no_sign(graph, op.input(0)))
    return product_to_dense(graph, op, notes)
