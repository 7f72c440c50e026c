"""A RESHAPE to a shape that is computed from a shape -> one to a constant shape, where only one size is unknown.

Exporters compute the shape behind a flatten from the batch size when that is unknown; the runtime's delegates stop at
such ops, although -1 says the same.
"""

from __future__ import annotations

from litebnn.graph import Graph
from litebnn.rewriting.notes import Notes
from litebnn.rewriting.reshapes import reshape_op


def fold_reshape_shapes(graph: Graph, notes: Notes) -> bool:
    changed = False
    for op in list(graph.ops):
        if op.name != "RESHAPE" or len(op.inputs) < 2 or op.inputs[1] is None or op.input(1).is_constant:
            continue
        known = [size for size in op.output.dims if size > 0]
        if op.output.shape_signature is None or len(known) != len(op.output.dims) - 1:
            continue
        graph.replace(op, reshape_op(op.input(0), op.output))
        changed = True
    return changed
