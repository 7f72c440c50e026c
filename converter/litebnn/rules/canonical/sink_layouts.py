"""Transposes and reshapes move after other ops, where later transposes and reshapes cancel them.

Channel-first exporters put transposes around each convolution and compute everything else channel-first. These
exporters write a Conv1D as a CONV_2D between reshapes, and may flatten the boolean of a sign. Each transpose or reshape
separates a layer from its sign and from ops that it could fuse.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from litebnn.analysis.constants import ELEMENTWISE, ON_ELEMENTS
from litebnn.analysis.layouts import IN_LAYOUT, Layout, axis_in, layouts_of
from litebnn.analysis.match import uniform
from litebnn.analysis.quantization import ROUNDING
from litebnn.analysis.signs import find_two_values
from litebnn.graph import Graph, Op, Reshaped, Tensor, Transposed, constant, derived, facts, like, then
from litebnn.rules.build.notes import Notes, each
from litebnn.rules.build.ops import is_describable, layout_op, merge_reshapes, merge_transpose, transposed

# A transpose or reshape may move from before these ops to after them.
_PASSED = (*ON_ELEMENTS, *ROUNDING, *IN_LAYOUT, "CONCATENATION", "RESHAPE", "TRANSPOSE")


@each(*_PASSED)
def sink_layouts(graph: Graph, op: Op, notes: Notes) -> bool:
    # A transpose that reaches another transpose is merged with it at once. Otherwise each transpose would move past
    # only one op in each round.
    if op.name == "TRANSPOSE":
        return merge_transpose(graph, op)
    return any(_sunk(graph, op, first, layout) for first, layout in _layouts_to_sink(graph, op))


def _layouts_to_sink(graph: Graph, op: Op) -> Iterator[tuple[Op, Layout]]:
    """Yields ops, producers of an input of `op`, that should move to after `op`. There are at most two: the first
    transpose, and the first reshape that separates `op` from a sign or ends a Conv1D.
    """
    producers = [producer for tensor in op.inputs if (producer := graph.producer(tensor)) is not None]
    for are_transposes in (True, False):
        of_kind = (each for each in producers if (each.name == "TRANSPOSE") is are_transposes)
        first = next((each for each in of_kind if are_transposes or _hides_a_sign(graph, each, op)), None)
        if first is not None:
            yield from ((first, layout) for layout in layouts_of(first))


def _hides_a_sign(graph: Graph, op: Op, reader: Op) -> bool:
    """True for a reshape whose input has only two values, or for one that removes the extra axis of a Conv1D."""
    if reader.name == "BATCH_TO_SPACE_ND":
        return facts(op).reshapes and graph.sole_consumer(op.output) is reader
    if not facts(op).reshapes or not is_describable(op.output) or _has_grids_of_channels(op.output):
        return False
    decides = op.output.type == "BOOL" or find_two_values(graph, op.input(0)) is not None
    return (decides and reader.name not in IN_LAYOUT) or _ends_a_conv1d(graph, op)


def _ends_a_conv1d(graph: Graph, op: Op) -> bool:
    """True if the output of a Conv1D, perhaps after other ops, is transposed to channel-first and loses its axis of
    size 1.
    """
    turn = graph.producer(op.input(0))
    while turn is not None and turn.name in ELEMENTWISE and turn.inputs[0] is not None:
        turn = graph.producer(turn.input(0))
    is_narrowed = any(len(layout.before) == 4 and layout.inverse.unit_axis == 2 for layout in layouts_of(op))
    return turn is not None and turn.name == "TRANSPOSE" and is_narrowed


def _sunk(graph: Graph, op: Op, first: Op, layout: Layout) -> bool:
    if op.name == "RESHAPE":
        return _absorbed(graph, op, first, layout)
    if op.name in IN_LAYOUT:
        return _of_one_tensor(graph, op, first, layout)
    fits = len(op.output.dims) == len(layout.after) if layout.order else op.output.dims == layout.after
    if not fits or (op.name == "CONCATENATION" and not layout.order) or _has_grids_of_channels(op.output):
        return False
    # An operand may get a new TRANSPOSE only if it is smaller than the largest transposed operand. Otherwise the rule
    # could go on forever.
    turns = (turn for turn in map(graph.producer, op.inputs) if turn is not None and _is_alike(turn, layout))
    most = max(math.prod(turn.input(0).shape) for turn in turns)
    operands = [_operand(graph, tensor, layout, op, most) for tensor in op.inputs]
    known = [operand for operand in operands if operand is not None]
    if len(known) != len(operands):
        return False
    if op.name == "CONCATENATION":
        op.options.axis = (layout.order or ())[op.options.axis]
    for index, operand in enumerate(known):
        graph.set_input(op, index, operand)
    _move_after(graph, op, layout)
    return True


def _is_alike(op: Op, layout: Layout) -> bool:
    """True if `op` is a transpose or reshape that changes the layout as `layout` does."""
    return any(
        own.axes == layout.axes if layout.order else own.order is None and own.before == layout.before
        for own in layouts_of(op)
    )


def _operand(graph: Graph, tensor: Tensor | None, layout: Layout, op: Op, most: int) -> Tensor | None:
    """Returns the operand that `op` reads once the transpose or reshape `layout` comes after `op` instead of before it.
    None if the operand would need a new TRANSPOSE and is too large for one.
    """
    producer = graph.producer(tensor)
    if tensor is None or (producer is not None and _is_alike(producer, layout)):
        return None if producer is None else producer.input(0)
    if op.name == "CONCATENATION" or _has_grids_of_channels(tensor) or len(tensor.dims) > len(layout.after):
        return None
    array = tensor.array
    if layout.order is not None and math.prod(tensor.dims) == 1:
        return tensor
    if layout.order is None and array is not None and uniform(tensor) is not None:
        return constant(tensor.name, array.reshape(-1)[:1].reshape(()), tensor.quantization)
    if array is not None and (layout.order is None or tensor.quantization is None):
        # If the condition of SELECT is a vector, it selects rows.
        moved = None if op.name == "SELECT" else layout.inverse.of_array(array)
        name = derived(tensor.name, _suffix("/turned", layout))
        return None if moved is None else constant(name, moved, tensor.quantization)
    is_smaller = min(tensor.dims, default=0) > 0 and math.prod(tensor.dims) < most
    if layout.order is None or tensor.is_constant or len(tensor.dims) != len(layout.after) or not is_smaller:
        return None
    return transposed(graph, tensor, np.argsort(layout.order), before=op)


def _of_one_tensor(graph: Graph, op: Op, first: Op, layout: Layout) -> bool:
    """Moves a pad, a GATHER, a reduction or a BATCH_TO_SPACE_ND before a change of layout. The op's parameters are
    changed to the new axes.
    """
    parameters = IN_LAYOUT[op.name](op, layout.inverse) if op.inputs[0] is first.output else None
    if parameters is None:
        return False
    if (axis := axis_in(op, layout.inverse)) is not None:
        op.options.axis = axis
    graph.set_input(op, 0, first.input(0))
    for index, (suffix, values) in enumerate(parameters.items(), start=1):
        graph.set_input(op, index, constant(derived(op.output.name, suffix), values))
    if getattr(op.options, "keep_dims", True):
        _move_after(graph, op, layout)
    return True


def _move_after(graph: Graph, op: Op, layout: Layout) -> None:
    """Inserts a transpose or reshape after `op`, which makes the change of axes `layout`. The op then writes its output
    without this change."""
    result, own = op.output, layout.inverse
    if layout.order is not None:
        dims = tuple(result.dims[axis] for axis in own.order or ())
    elif own.axes is not None:
        dims = tuple(1 if axis is None else result.dims[axis] for axis in own.axes)
    else:
        dims = layout.before
    inner = like(result, derived(result.name, _suffix("/unturned", layout)), dims=dims)
    move = Reshaped(result.dims, dims) if own.order is None else Transposed(own.order)
    inner.origin = then(result, move)
    graph.set_output(op, inner)
    graph.insert(layout_op(layout, inner, result), after=op)


def _absorbed(graph: Graph, op: Op, first: Op, layout: Layout) -> bool:
    """Merges a reshape with the preceding reshape, or with a TRANSPOSE that keeps the elements in order."""
    if layout.order is None:
        return merge_reshapes(graph, op)
    moved = [axis for axis in layout.order if layout.before[axis] != 1]
    if moved != sorted(moved) or op.inputs[0] is not first.output:
        return False
    graph.set_input(op, 0, first.input(0))
    return True


def _has_grids_of_channels(tensor: Tensor) -> bool:
    return tensor.quantization is not None and tensor.quantization.scale.size > 1


def _suffix(of_transpose: str, layout: Layout) -> str:
    return of_transpose if layout.order is not None else "/unshaped"
