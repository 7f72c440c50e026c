"""A TRANSPOSE, or the reshape that adds a Conv1D's axis, moves before padding, GATHER, SPACE_TO_BATCH_ND and
reshapes.

A sign can be packed only if its last axis is the channels. In channel-first models, a TRANSPOSE after the sign moves
the channels there, but padding and a Conv1D's new axis may come in between. Exporters also write a dilated Conv1D as
PAD, SPACE_TO_BATCH_ND, EXPAND_DIMS and CONV_2D. If the axis is added first, the other rules see only two-dimensional
convolutions.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from litebnn.analysis.layouts import IN_LAYOUT, Layout, axis_in, layouts_of
from litebnn.analysis.padding import PADDING
from litebnn.graph import Graph, Op, builtin_op, constant, derived, facts, like
from litebnn.rules.build.notes import Notes, each
from litebnn.rules.build.ops import is_describable, layout_op, merge_transpose, reshape_op, transposed


@each("EXPAND_DIMS", "RESHAPE", "TRANSPOSE")
def raise_layouts(graph: Graph, op: Op, notes: Notes) -> bool:
    if op.name == "TRANSPOSE" and merge_transpose(graph, op):
        return True
    first = graph.producer(op.input(0))
    if first is None or (op.name == "TRANSPOSE" and graph.sole_consumer(first.output) is not op):
        return False
    if first.name in (*PADDING, "GATHER"):
        return any(_raised(graph, op, first, layout) for layout in layouts_of(op))
    return op.name == "TRANSPOSE" and facts(first).reshapes and _before_reshape(graph, op, first)


def _raised(graph: Graph, op: Op, first: Op, layout: Layout) -> bool:
    source, axis = first.input(0), layout.unit_axis
    is_of_conv1d = len(layout.before) < len(layout.after) and axis in range(1, len(layout.before))
    parameters = IN_LAYOUT[first.name](first, layout) if layout.order or is_of_conv1d else None
    if parameters is None:
        return False
    if layout.order is not None:
        moved = transposed(graph, source, layout.order, before=op)
    else:
        assert axis is not None
        moved = like(source, derived(source.name, "/expanded"), dims=(*source.dims[:axis], 1, *source.dims[axis:]))
        graph.insert(layout_op(layout, source, moved), before=op)
    own = [constant(derived(op.output.name, suffix), values) for suffix, values in parameters.items()]
    options: dict[str, Any] = {"axis": axis_in(first, layout)} if first.name == "GATHER" else {}
    graph.replace(op, builtin_op(first.name, [moved, *own, *first.inputs[1 + len(own) :]], op.output, **options))
    return True


def _before_reshape(graph: Graph, op: Op, first: Op) -> bool:
    turns, layout = layouts_of(op), layouts_of(first)[0]
    axis, larger = layout.unit_axis, max(len(layout.before), len(layout.after))
    if not turns or axis is None or larger != 4 or not is_describable(op.output):
        return False
    order = np.asarray(turns[0].order)
    if len(layout.after) == larger:
        others = order[order != axis]
        widened = others - (others > axis)
    else:  # the axis becomes the height of a one-row image, whose own TRANSPOSE may cancel this one
        widened = np.insert(order + (order >= axis), 1, axis)
    source = transposed(graph, first.input(0), widened, before=op)
    graph.replace(op, reshape_op(source, op.output))
    return True
