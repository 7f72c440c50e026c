"""Transposes go behind what works on each element, joins channels or takes means, where the next ones cancel them.

Channel-first exporters put them around convolutions alone, so what lies between two layers is computed channel-first,
and neither a sign nor what a layer could fuse stands next to it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from litebnn.graph import Graph, Op, Tensor, constant
from litebnn.rewriting.build import derived, like, transpose_op, transposed
from litebnn.rewriting.constants import ON_ELEMENTS, REDUCTIONS
from litebnn.rewriting.each import each
from litebnn.rewriting.match import transpose_order
from litebnn.rewriting.notes import Notes
from litebnn.rewriting.padding import PADS


@each(*ON_ELEMENTS, *REDUCTIONS, *PADS, "CONCATENATION", "RESHAPE")
def sink_transposes(graph: Graph, op: Op, notes: Notes) -> bool:
    order = next(filter(None, (_order_of(graph, tensor) for tensor in op.inputs)), None)
    if order is None or (len(op.output.dims) != len(order) and op.name not in (*REDUCTIONS, "RESHAPE")):
        return False
    if op.name in REDUCTIONS:
        return _reduce_first(graph, op, order)
    if op.name in PADS:
        return _pad_first(graph, op, order)
    if op.name == "RESHAPE":
        return _reshape_alone(graph, op, order)
    operands = [_turned_back(graph, tensor, order, op) for tensor in op.inputs]
    known = [operand for operand in operands if operand is not None]
    if len(known) != len(operands):
        return False
    if op.name == "CONCATENATION":
        axis = op.options.axis % len(order)
        op.options.axis = order[axis]
    for index, operand in enumerate(known):
        graph.set_input(op, index, operand)
    _turn_output(graph, op, order)
    return True


def _order_of(graph: Graph, tensor: Tensor | None) -> tuple[int, ...] | None:
    """The order of the axes of which `tensor` is the TRANSPOSE."""
    op = graph.producer(tensor)
    order = None if op is None or op.name != "TRANSPOSE" else transpose_order(op)
    return None if order is None else tuple(int(axis) for axis in order)


def _turned_back(graph: Graph, tensor: Tensor | None, order: Sequence[int], op: Op) -> Tensor | None:
    """The operand of `op` in front of its TRANSPOSE; None where it has none and is too large for a new one."""
    if tensor is None:
        return None
    if _order_of(graph, tensor) == tuple(order):
        producer = graph.producer(tensor)
        assert producer is not None
        return producer.input(0)
    if op.name == "CONCATENATION" or len(tensor.dims) > len(order):
        return None
    if math.prod(tensor.dims) == 1:
        return tensor
    inverse = np.argsort(order)
    array = tensor.array
    if array is not None and tensor.quantization is None:
        if op.name == "SELECT":  # its vectors pick rows
            return None
        shape = (*[1] * (len(order) - array.ndim), *array.shape)
        return constant(derived(tensor.name, "/turned"), np.ascontiguousarray(array.reshape(shape).transpose(inverse)))
    if tensor.is_constant or len(tensor.dims) != len(order) or min(tensor.dims) < 0:
        return None
    if math.prod(tensor.dims) >= math.prod(op.output.shape):
        return None
    return transposed(graph, tensor, inverse, before=op)


def _turn_output(graph: Graph, op: Op, order: Sequence[int]) -> None:
    """`op`, whose operands are turned back by now, gets an output of their axes, and a TRANSPOSE behind it."""
    result = op.output
    inner = like(result, derived(result.name, "/unturned"), dims=[result.dims[axis] for axis in np.argsort(order)])
    inner.quantization = result.quantization
    graph.set_output(op, inner)
    graph.insert(transpose_op(inner, order, result), after=op)


def _reduce_first(graph: Graph, op: Op, order: Sequence[int]) -> bool:
    """A mean over some axes of a TRANSPOSE -> one over the axes that these were."""
    axes = op.input(1).array
    source = _turned_back(graph, op.input(0), order, op)
    if axes is None or source is None or np.any(np.abs(axes) > len(order)):
        return False
    own = [order[int(axis)] for axis in axes.reshape(-1)]
    kept = [axis for axis in order if axis not in own]
    if not op.options.keep_dims and kept != sorted(kept):
        return False
    graph.set_input(op, 0, source)
    graph.set_input(op, 1, constant(derived(op.output.name, "/axes"), np.asarray(own, np.int32)))
    if op.options.keep_dims:
        _turn_output(graph, op, order)
    return True


def _pad_first(graph: Graph, op: Op, order: Sequence[int]) -> bool:
    amounts, source = op.input(1).array, _turned_back(graph, op.input(0), order, op)
    if amounts is None or source is None or amounts.shape != (len(order), 2):
        return False
    graph.set_input(op, 0, source)
    graph.set_input(op, 1, constant(derived(op.output.name, "/amounts"), amounts[np.argsort(order)]))
    _turn_output(graph, op, order)
    return True


def _reshape_alone(graph: Graph, op: Op, order: Sequence[int]) -> bool:
    """A reshape of a TRANSPOSE that keeps the elements in order is one of what is in front of it."""
    source = _turned_back(graph, op.input(0), order, op)
    if source is None:
        return False
    moved = [axis for axis in order if source.dims[axis] != 1]
    if moved != sorted(moved):
        return False
    graph.set_input(op, 0, source)
    return True
