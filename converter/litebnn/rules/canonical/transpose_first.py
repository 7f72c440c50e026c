"""TRANSPOSE after padding, EXPAND_DIMS or SQUEEZE -> TRANSPOSE before it; two TRANSPOSEs -> one or none.

Before a network's first layer, padding and a Conv1D's axis lie between a sign and the transpose that makes its last
axis the channels. After the last layer, such an axis lies between two transposes.
"""

from __future__ import annotations

import numpy as np

from litebnn.analysis.match import transpose_order
from litebnn.analysis.padding import PADS, pad_amounts
from litebnn.build.each import each
from litebnn.build.notes import Notes
from litebnn.build.ops import merge_transpose, transposed
from litebnn.build.reshapes import is_describable, reshape_op
from litebnn.graph import Array, Graph, Op, builtin_op, constant, derived, facts


@each("TRANSPOSE")
def transpose_first(graph: Graph, op: Op, notes: Notes) -> bool:
    if merge_transpose(graph, op):
        return True
    first, order = graph.producer(op.input(0)), transpose_order(op)
    if first is None or order is None or graph.sole_consumer(first.output) is not op:
        return False
    if first.name in PADS:
        return _before_padding(graph, op, first, order)
    return facts(first).reshapes and (
        _before_unit_axis(graph, op, first, order) or _before_squeeze(graph, op, first, order)
    )


def _before_padding(graph: Graph, op: Op, first: Op, order: Array) -> bool:
    amounts = pad_amounts(first)
    if amounts is None:
        return False
    source = transposed(graph, first.input(0), order, before=op)
    inputs = [source, constant(derived(op.output.name, "/amounts"), amounts[order]), *first.inputs[2:]]
    graph.replace(op, builtin_op(first.name, inputs, op.output))
    return True


def _before_unit_axis(graph: Graph, op: Op, first: Op, order: Array) -> bool:
    before, after = first.input(0).dims, first.output.dims
    axis = _unit_axis(before, after)
    if axis is None or len(after) != 4 or not is_describable(op.output):
        return False
    others = order[order != axis]
    source = transposed(graph, first.input(0), others - (others > axis), before=op)
    graph.replace(op, reshape_op(source, op.output))
    return True


def _before_squeeze(graph: Graph, op: Op, first: Op, order: Array) -> bool:
    before, after = first.input(0).dims, first.output.dims
    axis = _unit_axis(after, before)
    if axis is None or len(before) != 4 or not is_describable(op.output):
        return False
    # The axis goes to where a CONV_2D of one row has its height, so that the layer's own transpose may cancel this one.
    widened = np.insert(order + (order >= axis), 1, axis)
    source = transposed(graph, first.input(0), widened, before=op)
    graph.replace(op, reshape_op(source, op.output))
    return True


def _unit_axis(smaller: tuple[int, ...], larger: tuple[int, ...]) -> int | None:
    """The axis of size 1 that only `larger` has."""
    axes = (i for i, size in enumerate(larger) if size == 1 and (*larger[:i], *larger[i + 1 :]) == smaller)
    return next(axes, None)
