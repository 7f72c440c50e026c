"""Reshapes between a comparison and its sign, and those that remove a Conv1D's axis, move after the following ops.

Channel-first exporters write a Conv1D as a CONV_2D between reshapes, and may flatten the boolean of a sign. The
reshapes would hide the sign and the transposes from the layer.
"""

from __future__ import annotations

import numpy as np

from litebnn.analysis.constants import ELEMENTWISE
from litebnn.analysis.match import uniform
from litebnn.analysis.padding import PADS, pad_amounts
from litebnn.analysis.signs import find_two_values
from litebnn.analysis.sums import ROUNDING
from litebnn.build.each import each
from litebnn.build.notes import Notes
from litebnn.build.reshapes import is_describable, reshape_op
from litebnn.graph import Graph, Op, Reshaped, Tensor, constant, derived, facts, like, then


@each(*ELEMENTWISE, *PADS, *ROUNDING, "CAST", "RESHAPE")
def sink_reshapes(graph: Graph, op: Op, notes: Notes) -> bool:
    first = next(filter(None, (_reshape_to_sink(graph, tensor) for tensor in op.inputs)), None)
    if first is None:
        return False
    if op.name == "RESHAPE":
        return _merge(graph, first, op)
    if op.name in PADS:
        return _pad_first(graph, first, op)
    before, after = first.input(0).dims, first.output.dims
    if op.output.dims != after or _has_grids_of_channels(op.output):
        return False
    operands = [_unshaped(graph, tensor, before, after) for tensor in op.inputs]
    known = [operand for operand in operands if operand is not None]
    if len(known) != len(operands):
        return False
    for index, operand in enumerate(known):
        graph.set_input(op, index, operand)
    _reshape_output(graph, op, before)
    return True


def _reshape_output(graph: Graph, op: Op, before: tuple[int, ...]) -> None:
    """Gives `op`, whose operands already have the shape before the reshape, such an output and a RESHAPE after it."""
    result = op.output
    inner = like(result, derived(result.name, "/unshaped"), dims=before)
    inner.origin = then(result, Reshaped(result.dims, before))
    graph.set_output(op, inner)
    graph.insert(reshape_op(inner, result), after=op)


def _reshape_to_sink(graph: Graph, tensor: Tensor | None) -> Op | None:
    op = graph.producer(tensor)
    if op is None or not facts(op).reshapes or not is_describable(op.output) or _has_grids_of_channels(op.output):
        return None
    decides = op.output.type == "BOOL" or find_two_values(graph, op.input(0)) is not None
    return op if decides or _takes_an_axis_away(graph, op) else None


def _takes_an_axis_away(graph: Graph, op: Op) -> bool:
    """True if a Conv1D's output, perhaps after other ops, is transposed to channel-first and loses its axis of 1."""
    before, after = op.input(0).dims, op.output.dims
    turn = graph.producer(op.input(0))
    while turn is not None and turn.name in ELEMENTWISE and turn.inputs[0] is not None:
        turn = graph.producer(turn.input(0))
    return turn is not None and turn.name == "TRANSPOSE" and len(before) == 4 and (*before[:2], *before[3:]) == after


def _pad_first(graph: Graph, first: Op, op: Op) -> bool:
    amounts, source = pad_amounts(op), first.input(0)
    if amounts is None or op.inputs[0] is not first.output or not _takes_an_axis_away(graph, first):
        return False
    graph.set_input(op, 0, source)
    unshaped = constant(derived(op.input(1).name, "/unshaped"), np.insert(amounts, 2, 0, axis=0))
    graph.set_input(op, 1, unshaped)
    _reshape_output(graph, op, (*op.output.dims[:2], 1, *op.output.dims[2:]))
    return True


def _unshaped(graph: Graph, tensor: Tensor | None, before: tuple[int, ...], after: tuple[int, ...]) -> Tensor | None:
    """The operand in the shape before a reshape; None if that is unknown."""
    if tensor is None:
        return None
    op = graph.producer(tensor)
    if op is not None and facts(op).reshapes and op.input(0).dims == before:
        return op.input(0)
    number, array, q = uniform(tensor), tensor.array, tensor.quantization
    if array is None or _has_grids_of_channels(tensor):
        return None
    if number is not None:
        operand = constant(tensor.name, array.reshape(-1)[:1].reshape(()))
    elif array.ndim != len(after) or (*before[:2], *before[3:]) != after:
        return None
    else:
        operand = constant(derived(tensor.name, "/unshaped"), array.reshape(*array.shape[:2], 1, *array.shape[2:]))
    operand.quantization = q
    return operand


def _has_grids_of_channels(tensor: Tensor) -> bool:
    return tensor.quantization is not None and tensor.quantization.scale.size > 1


def _merge(graph: Graph, first: Op, op: Op) -> bool:
    """Merges two successive reshapes into one, or none if the dimensions are the original ones."""
    source = first.input(0)
    if source.dims == op.output.dims and not graph.is_output(op.output):
        graph.redirect(op.output, source)
        graph.remove(op)
        return True
    if not is_describable(op.output):
        return False
    graph.replace(op, reshape_op(source, op.output))
    return True
