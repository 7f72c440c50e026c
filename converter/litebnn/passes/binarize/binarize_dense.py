"""FULLY_CONNECTED of a sign with ±alpha weights -> 1×1 LceBconv2d between reshapes."""

from __future__ import annotations

from litebnn.graph import Graph, Op
from litebnn.rewriting.bconv import replace_dense
from litebnn.rewriting.each import each
from litebnn.rewriting.notes import Notes
from litebnn.rewriting.reasons import why_no_sign
from litebnn.rewriting.signs import bits_of_signs, holds_signs
from litebnn.rewriting.weights import binary_parts, not_float, weight_values


@each("FULLY_CONNECTED")
def binarize_dense(graph: Graph, op: Op, notes: Notes) -> bool:
    if op.output.type != "FLOAT32":  # quantized layers of a sign are float by now, except those that have a reason
        return False
    if not holds_signs(graph, op.input(0)):
        return not notes.has_reasons(op) and notes.left_alone(op, why_no_sign(graph, op.input(0)))
    weights = weight_values(op.input(1))
    if weights is None:
        return notes.left_alone(op, not_float(op.input(1)))
    parts = binary_parts(graph, op, weights)
    if isinstance(parts, str):
        return notes.left_alone(op, parts)
    bits = bits_of_signs(graph, op.input(0), before=op)
    notes.made_binary(op, replace_dense(graph, op, bits, op.input(1).name, *parts))
    return True
