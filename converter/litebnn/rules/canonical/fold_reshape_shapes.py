"""A RESHAPE may compute its new shape from the shape of a tensor. If only one size is unknown, it becomes a RESHAPE to
a constant shape.

For an unknown batch size, exporters compute the shape after a flatten. Delegates refuse such ops, although a constant
shape with the size -1 has the same effect. Before a dense layer TensorFlow also computes the number of columns, which
the layer's weights determine.
"""

from __future__ import annotations

from litebnn.graph import Graph, Op, derived, like
from litebnn.rules.build.notes import Notes, each
from litebnn.rules.build.ops import reshape_op


@each("RESHAPE")
def fold_reshape_shapes(graph: Graph, op: Op, notes: Notes) -> bool:
    shape = op.optional(1)
    if shape is None or shape.is_constant:
        return False
    known = [size for size in op.output.dims if size > 0]
    if op.output.shape_signature is not None and len(known) == len(op.output.dims) - 1:
        graph.replace(op, reshape_op(op.input(0), op.output))
        return True
    columns = _columns_read(graph, op)
    if columns is None:
        return False
    rows = like(op.output, derived(op.output.name, "/rows"), dims=(-1, columns))
    graph.redirect(op.output, rows)
    graph.replace(op, reshape_op(op.input(0), rows))
    return True


def _columns_read(graph: Graph, op: Op) -> int | None:
    """Returns the number of columns that dense layers read from an output, if only dense layers read it. None if the
    number is unknown.
    """
    readers = graph.consumers(op.output)
    if not readers or graph.is_output(op.output):
        return None
    columns = {
        reader.input(1).channels
        if reader.name == "FULLY_CONNECTED" and not getattr(reader.options, "keep_num_dims", False)
        else -1
        for reader in readers
    }
    found = columns.pop()
    return found if found > 0 and not columns else None
