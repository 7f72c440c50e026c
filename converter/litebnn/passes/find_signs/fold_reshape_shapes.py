"""A RESHAPE to a shape that is computed from a shape -> one to a constant shape, where only one size is unknown.

Exporters compute the shape behind a flatten from the batch size when that is unknown; the runtime's delegates stop at
such ops, although -1 says the same.
"""

from __future__ import annotations

from litebnn.graph import Graph, Op
from litebnn.rewriting.each import each
from litebnn.rewriting.notes import Notes
from litebnn.rewriting.reshapes import reshape_op


@each("RESHAPE")
def fold_reshape_shapes(graph: Graph, op: Op, notes: Notes) -> bool:
    shape = op.optional(1)
    if shape is None or shape.is_constant:
        return False
    known = [size for size in op.output.dims if size > 0]
    if op.output.shape_signature is None or len(known) != len(op.output.dims) - 1:
        return False
    graph.replace(op, reshape_op(op.input(0), op.output))
    return True
