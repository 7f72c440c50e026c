"""BATCH_MATMUL of a sign with a constant ±alpha matrix -> FULLY_CONNECTED, which the next pass makes binary.

TensorFlow's converter leaves a dense layer so when its kernel is too large for it to fold.
"""

from __future__ import annotations

import numpy as np

from litebnn.flatbuffer import Graph, Op, constant, schema
from litebnn.passes.binary_conv import binary_weights
from litebnn.passes.common import bits_of, builtin
from litebnn.passes.constant_weights import evaluate, is_computed_from_constants
from litebnn.passes.notes import Notes
from litebnn.passes.reasons import why_no_sign


def matmul_to_dense(graph: Graph, notes: Notes) -> bool:
    changed = False
    for op in list(graph.ops):
        if op.name != "BATCH_MATMUL" or op.output.type != "FLOAT32":
            continue
        reason = _convert(graph, op, notes)
        if reason is None:
            changed = True
        else:
            notes.left_alone(op, reason)
    return changed


def _convert(graph: Graph, op: Op, notes: Notes) -> str | None:
    """Replaces the op, or says why not."""
    if bits_of(graph, op.input(0)) is None:
        return why_no_sign(graph, op.input(0))
    matrix = op.input(1)
    if op.options.adjX or len(matrix.shape) != 2 or not is_computed_from_constants(graph, matrix):
        return "it is no product with a constant matrix"
    values = evaluate(graph, matrix)
    if values is None or values.dtype != np.float32 or values.shape != matrix.shape:
        return "its weights are not a float constant"
    weights = values if op.options.adjY else np.ascontiguousarray(values.T)
    parts = binary_weights(weights)
    if isinstance(parts, str):
        return parts
    dense = Op(
        builtin("FULLY_CONNECTED"),
        [op.input(0), constant(matrix.name, weights), None],
        [op.output],
        schema.FullyConnectedOptionsT(),
    )
    notes.became(op, graph.replace(op, dense))
    return None
