"""EXPAND_DIMS and SQUEEZE around a Conv1D's CONV_2D move outwards, beyond padding and space-to-batch.

Exporters write PAD, SPACE_TO_BATCH_ND, EXPAND_DIMS, CONV_2D, SQUEEZE and BATCH_TO_SPACE_ND. With the two reshapes at
the ends, the other rules see only two-dimensional convolutions.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from litebnn.analysis.padding import PADS, pad_amounts
from litebnn.build.each import each
from litebnn.build.notes import Notes
from litebnn.graph import Array, Graph, Op, Tensor, builtin_op, constant, derived, facts, like


@each()
def move_unit_axes(graph: Graph, op: Op, notes: Notes) -> bool:
    return facts(op).reshapes and (_add_first(graph, op) or _take_away_last(graph, op))


def _unit_axis(smaller: Tensor, larger: Tensor) -> int | None:
    """The axis of size 1 between batch and channels that only `larger` has; None if there is none."""
    for axis in range(1, len(larger.dims) - 1):
        if larger.dims[axis] == 1 and (*larger.dims[:axis], *larger.dims[axis + 1 :]) == smaller.dims:
            return axis
    return None


def _add_first(graph: Graph, op: Op) -> bool:
    first = graph.producer(op.input(0))
    axis = _unit_axis(op.input(0), op.output)
    if first is None or axis is None or first.name not in (*PADS, "SPACE_TO_BATCH_ND"):
        return False
    parameters = _with_unit_axis(first, axis)
    if parameters is None:
        return False
    source = first.input(0)
    expanded = like(source, derived(source.name, "/expanded"), dims=(*source.dims[:axis], 1, *source.dims[axis:]))
    where = constant(derived(expanded.name, "/axis"), np.asarray(axis, np.int32))
    graph.insert(builtin_op("EXPAND_DIMS", [source, where], expanded), before=op)
    graph.replace(op, builtin_op(first.name, [expanded, *parameters, *first.inputs[1 + len(parameters) :]], op.output))
    return True


def _take_away_last(graph: Graph, op: Op) -> bool:
    last = graph.sole_consumer(op.output)
    axis = _unit_axis(op.output, op.input(0))
    if last is None or axis is None or last.name != "BATCH_TO_SPACE_ND":
        return False
    parameters = _with_unit_axis(last, axis)
    if parameters is None:
        return False
    result = last.output
    expanded = like(result, derived(result.name, "/expanded"), dims=(*result.dims[:axis], 1, *result.dims[axis:]))
    graph.insert(builtin_op("BATCH_TO_SPACE_ND", [op.input(0), *parameters], expanded), before=last)
    graph.replace(last, builtin_op("SQUEEZE", [expanded], result, squeeze_dims=np.asarray([axis], np.int32)))
    graph.remove(op)
    return True


def _with_unit_axis(op: Op, axis: int) -> list[Tensor] | None:
    """An op's block, if any, and amounts for a tensor with one more axis; None if that is impossible."""
    if op.name in PADS:
        amounts = pad_amounts(op)
        return None if amounts is None else [_inserted(op, amounts, axis, [0, 0])]
    block, amounts = op.input(1).array, op.input(2).array
    if block is None or amounts is None or (block.shape, amounts.shape) != ((1,), (1, 2)):
        return None
    if not len(op.input(0).dims) == len(op.output.dims) == 3:
        return None
    return [_inserted(op, block, axis - 1, 1), _inserted(op, amounts, axis - 1, [0, 0])]


def _inserted(op: Op, values: Array, index: int, more: int | Sequence[int]) -> Tensor:
    return constant(derived(op.output.name, "/parameters"), np.insert(values, index, more, axis=0))
