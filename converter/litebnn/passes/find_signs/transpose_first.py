"""TRANSPOSE of what is padded, or has got the axis of a Conv1D -> the same of what is transposed.

`sink_transposes` has nothing to sink in front of a network's first layer: there padding and axes stand between a sign
and the transpose that makes its last axis the channels.
"""

from __future__ import annotations

import numpy as np

from litebnn.graph import Array, Graph, Op, Tensor, builtin_op, constant, facts
from litebnn.rewriting.build import derived, like
from litebnn.rewriting.each import each
from litebnn.rewriting.match import transpose_order
from litebnn.rewriting.notes import Notes
from litebnn.rewriting.padding import PADS
from litebnn.rewriting.reshapes import is_describable, reshape_op


@each("TRANSPOSE")
def transpose_first(graph: Graph, op: Op, notes: Notes) -> bool:
    first, order = graph.producer(op.input(0)), transpose_order(op)
    if first is None or order is None or graph.sole_consumer(first.output) is not op:
        return False
    if first.name in PADS:
        return _before_padding(graph, op, first, order)
    return facts(first).reshapes and _before_unit_axis(graph, op, first, order)


def _before_padding(graph: Graph, op: Op, first: Op, order: Array) -> bool:
    amounts = first.input(1).array
    if amounts is None or amounts.shape != (len(order), 2):
        return False
    source = _transposed(graph, first.input(0), order, before=op)
    inputs = [source, constant(derived(op.output.name, "/amounts"), amounts[order]), *first.inputs[2:]]
    graph.replace(op, builtin_op(first.name, inputs, op.output))
    return True


def _before_unit_axis(graph: Graph, op: Op, first: Op, order: Array) -> bool:
    before, after = first.input(0).dims, first.output.dims
    axis = next((i for i, size in enumerate(after) if size == 1 and (*after[:i], *after[i + 1 :]) == before), None)
    if axis is None or len(after) != 4 or not is_describable(op.output):
        return False
    others = order[order != axis]
    source = _transposed(graph, first.input(0), others - (others > axis), before=op)
    graph.replace(op, reshape_op(source, op.output))
    return True


def _transposed(graph: Graph, source: Tensor, order: Array, *, before: Op) -> Tensor:
    if np.array_equal(order, np.arange(len(order))):
        return source
    turned = like(source, derived(source.name, "/transposed"), dims=[source.dims[axis] for axis in order])
    turned.quantization = source.quantization
    axes = constant(derived(turned.name, "/order"), np.asarray(order, np.int32))
    graph.insert(builtin_op("TRANSPOSE", [source, axes], turned), before=before)
    return turned
