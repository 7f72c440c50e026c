"""Transposes move after elementwise ops, concatenations and means, where the next transposes cancel them.

Channel-first exporters put transposes around each convolution and compute everything else channel-first. The transposes
separate a layer from its sign and from ops that it could fuse.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from litebnn.analysis.constants import ON_ELEMENTS, REDUCTIONS
from litebnn.analysis.match import transpose_order
from litebnn.analysis.padding import PADS, pad_amounts
from litebnn.build.each import each
from litebnn.build.notes import Notes
from litebnn.build.ops import merge_transpose, transpose_op, transposed
from litebnn.graph import Graph, Op, Tensor, Transposed, constant, derived, like, then


@each(*ON_ELEMENTS, *REDUCTIONS, *PADS, "CONCATENATION", "RESHAPE", "TRANSPOSE")
def sink_transposes(graph: Graph, op: Op, notes: Notes) -> bool:
    # A transpose that reaches the next one is merged with it; otherwise each would move past one op in each round.
    if op.name == "TRANSPOSE":
        return merge_transpose(graph, op)
    of_one_tensor = _OF_ONE_TENSOR.get(op.name)
    if of_one_tensor is not None:
        turn = _turn(graph, op.inputs[0])
        return turn is not None and of_one_tensor(graph, op, *turn)
    turns = [turn for tensor in op.inputs if (turn := _turn(graph, tensor)) is not None]
    if not turns or len(op.output.dims) != len(turns[0][1]):
        return False
    order = turns[0][1]
    # Smaller operands may get a new TRANSPOSE. The largest remaining one shrinks, so this terminates.
    most = max(math.prod(source.shape) for source, one in turns if one == order)
    operands = [_turned_back(graph, tensor, order, op, most) for tensor in op.inputs]
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


def _turn(graph: Graph, tensor: Tensor | None) -> tuple[Tensor, Sequence[int]] | None:
    """The tensor of which `tensor` is the TRANSPOSE, and the order of the axes."""
    op = graph.producer(tensor)
    order = None if op is None or op.name != "TRANSPOSE" else transpose_order(op)
    return None if op is None or order is None else (op.input(0), tuple(int(axis) for axis in order))


def _turned_back(graph: Graph, tensor: Tensor | None, order: Sequence[int], op: Op, most: int) -> Tensor | None:
    """The operand of `op` before its TRANSPOSE; None if it has none and is too large for a new one."""
    if tensor is None:
        return None
    turn = _turn(graph, tensor)
    if turn is not None and turn[1] == order:
        return turn[0]
    if op.name == "CONCATENATION" or len(tensor.dims) > len(order):
        return None
    if math.prod(tensor.dims) == 1:
        return tensor
    inverse = np.argsort(order)
    array = tensor.array
    if array is not None and tensor.quantization is None:
        if op.name == "SELECT":  # its vectors select rows
            return None
        shape = (*[1] * (len(order) - array.ndim), *array.shape)
        return constant(derived(tensor.name, "/turned"), np.ascontiguousarray(array.reshape(shape).transpose(inverse)))
    if tensor.is_constant or len(tensor.dims) != len(order) or min(tensor.dims) < 0:
        return None
    if math.prod(tensor.dims) >= most:
        return None
    return transposed(graph, tensor, inverse, before=op)


def _turn_output(graph: Graph, op: Op, order: Sequence[int]) -> None:
    """Gives `op`, whose operands are no longer transposed, an output with their axes and a TRANSPOSE after it."""
    result = op.output
    own = tuple(np.argsort(order).tolist())
    inner = like(result, derived(result.name, "/unturned"), dims=[result.dims[axis] for axis in own])
    inner.origin = then(result, Transposed(own))
    graph.set_output(op, inner)
    graph.insert(transpose_op(inner, order, result), after=op)


def _reduce_first(graph: Graph, op: Op, source: Tensor, order: Sequence[int]) -> bool:
    """Moves a mean over some axes before a TRANSPOSE, with the axes permuted."""
    axes = op.input(1).array
    if axes is None or np.any(np.abs(axes) > len(order)):
        return False
    own = [order[int(axis)] for axis in axes.ravel()]
    kept = [axis for axis in order if axis not in own]
    if len(op.output.dims) != len(order) if op.options.keep_dims else kept != sorted(kept):
        return False
    graph.set_input(op, 0, source)
    graph.set_input(op, 1, constant(derived(op.output.name, "/axes"), np.asarray(own, np.int32)))
    if op.options.keep_dims:
        _turn_output(graph, op, order)
    return True


def _pad_first(graph: Graph, op: Op, source: Tensor, order: Sequence[int]) -> bool:
    amounts = pad_amounts(op)
    if amounts is None:
        return False
    graph.set_input(op, 0, source)
    graph.set_input(op, 1, constant(derived(op.output.name, "/amounts"), amounts[np.argsort(order)]))
    _turn_output(graph, op, order)
    return True


def _reshape_alone(graph: Graph, op: Op, source: Tensor, order: Sequence[int]) -> bool:
    """Removes a TRANSPOSE that keeps the elements in order, if a reshape reads it."""
    moved = [axis for axis in order if source.dims[axis] != 1]
    if moved != sorted(moved):
        return False
    graph.set_input(op, 0, source)
    return True


_OF_ONE_TENSOR: dict[str, Callable[[Graph, Op, Tensor, Sequence[int]], bool]] = {
    **dict.fromkeys(REDUCTIONS, _reduce_first),
    **dict.fromkeys(PADS, _pad_first),
    "RESHAPE": _reshape_alone,
}
