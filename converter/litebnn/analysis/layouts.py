"""Tables of ops, by the way in which they handle the elements and the axes of their inputs.

There are tables of the ops that only move, join or compare elements, and of the ops that commute with a layout. A
layout is a change of axes, which a TRANSPOSE or a reshape makes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from litebnn.analysis.constants import REDUCTIONS
from litebnn.analysis.match import fused_activation, transpose_order
from litebnn.analysis.padding import PADS, pad_amounts, pads_nothing
from litebnn.graph import Array, Op, Tensor, facts


@dataclass(frozen=True)
class Layout:
    """A Layout is a change of axes that keeps all elements: the change that a TRANSPOSE or a reshape makes."""

    # The dimensions before the change of axes, which are those of the op's input.
    before: tuple[int, ...]
    # The dimensions after the change of axes, which are those of the op's output.
    after: tuple[int, ...]
    # For each axis of the op's output, the corresponding axis of its input. A new axis of size 1 has None. The tuple as
    # a whole is None if the op merges several axes into one.
    axes: tuple[int | None, ...] | None = None

    @property
    def order(self) -> tuple[int, ...] | None:
        """Returns the permutation of a TRANSPOSE; None for a reshape."""
        known = [axis for axis in self.axes or () if axis is not None]
        return tuple(known) if len(known) == len(self.before) == len(self.after) else None

    @property
    def unit_axis(self) -> int | None:
        """Returns the axis of size 1 that a reshape adds or removes, as an index in the larger of both shapes."""
        if self.axes is None or self.order is not None:
            return None
        return self.axes.index(None) if None in self.axes else next(i for i in self.axes_before if i not in self.axes)

    @property
    def axes_before(self) -> range:
        return range(len(self.before))

    @property
    def inverse(self) -> Layout:
        axes = self.axes
        back = None if axes is None else tuple(axes.index(i) if i in axes else None for i in self.axes_before)
        return Layout(self.after, self.before, back)

    def moved(self, values: Array, fill: Any) -> Array | None:
        """Takes one value for each old axis, and returns the values in the order of the new axes. An axis that the
        layout adds gets the value `fill`.
        """
        if self.axes is None or len(values) != len(self.before):
            return None
        return np.asarray([fill if axis is None else values[axis] for axis in self.axes], values.dtype)

    def of_array(self, array: Array) -> Array | None:
        """Returns a broadcast operand of an op in the new layout; None if the layout removes an axis of the operand."""
        order = [axis for axis in self.axes or () if axis is not None]
        if len(order) != len(self.before) or array.ndim > len(order):
            return None
        whole = array.reshape((*[1] * (len(order) - array.ndim), *array.shape)).transpose(order)
        added = tuple(place for place, axis in enumerate(self.axes or ()) if axis is None)
        return np.ascontiguousarray(np.expand_dims(whole, added))


def layouts_of(op: Op) -> list[Layout]:
    """Returns all layouts that describe what an op does; empty for ops that neither transpose nor reshape.

    There may be several, because a reshape does not say which axis of size 1 it adds or removes. If it adds or removes
    no such axis, the reshape merges axes.
    """
    if op.name == "TRANSPOSE":
        order = transpose_order(op)
        axes = None if order is None else tuple(int(axis) for axis in order)
        return [] if axes is None else [Layout(op.input(0).dims, op.output.dims, axes)]
    if not facts(op).reshapes:
        return []
    before, after = op.input(0).dims, op.output.dims
    if len(before) > len(after):
        return [layout.inverse for layout in _with_unit_axes(after, before)] or [Layout(before, after)]
    return _with_unit_axes(before, after) or [Layout(before, after)]


def _with_unit_axes(smaller: tuple[int, ...], larger: tuple[int, ...]) -> list[Layout]:
    axes = (i for i, size in enumerate(larger) if size == 1 and (*larger[:i], *larger[i + 1 :]) == smaller)
    return [Layout(smaller, larger, (*range(i), None, *range(i, len(smaller)))) for i in axes]


def _amounts(op: Op, layout: Layout) -> dict[str, Array] | None:
    amounts = pad_amounts(op)
    moved = None if amounts is None else layout.moved(amounts, [0, 0])
    return None if moved is None else {"/amounts": moved}


def _block(op: Op, layout: Layout) -> dict[str, Array] | None:
    """Returns the block sizes and the amounts of a SPACE_TO_BATCH_ND or BATCH_TO_SPACE_ND in the new layout. The axis
    of size 1 that the layout adds gets an entry of its own, which leaves the axis unchanged. None if the op does not
    have exactly one spatial axis.
    """
    block, amounts, axis = op.input(1).array, op.input(2).array, layout.unit_axis
    if block is None or amounts is None or (block.shape, amounts.shape) != ((1,), (1, 2)):
        return None
    if axis not in (1, 2) or not len(op.input(0).dims) == len(op.output.dims) == 3 == len(layout.before):
        return None
    return {"/block": np.insert(block, axis - 1, 1), "/amounts": np.insert(amounts, axis - 1, [0, 0], axis=0)}


def _reduced(op: Op, layout: Layout) -> dict[str, Array] | None:
    axes, order, rank = op.input(1).array, layout.inverse.order, len(layout.before)
    if axes is None or order is None or np.any((axes < -rank) | (axes >= rank)):
        return None
    own = [order[int(axis)] for axis in axes.ravel()]
    kept = [axis for axis in order if axis not in own]
    if len(op.output.dims) != rank if op.options.keep_dims else kept != sorted(kept):
        return None
    return {"/axes": np.asarray(own, np.int32)}


def gathered_axis(op: Op) -> int | None:
    """Returns the axis, counted from the first, along which a GATHER takes elements by a constant vector of indices;
    None for other ops.
    """
    rank, axis = len(op.output.dims) if op.outputs else 0, int(getattr(op.options, "axis", 0))
    if op.name != "GATHER" or bool(getattr(op.options, "batch_dims", 0)) or not -rank <= axis < rank:
        return None
    indices, before, axis = op.input(1).array, op.input(0).dims, axis % rank
    if indices is None or indices.ndim != 1:
        return None
    return axis if (*before[:axis], len(indices), *before[axis + 1 :]) == op.output.dims else None


def copies_pixels(op: Op) -> bool:
    """True if a GATHER copies elements with all their channels."""
    return gathered_axis(op) not in (None, len(op.output.dims) - 1)


def axis_in(op: Op, layout: Layout) -> int | None:
    """Returns the axis of a GATHER in a new layout; None if the op is no GATHER, or cannot be expressed in it."""
    axis = gathered_axis(op)
    return None if axis is None or layout.axes is None or axis not in layout.axes else layout.axes.index(axis)


# For each kind of op with one data input, a function that translates the op's constant inputs, such as axes, to another
# layout. The result is a dictionary of arrays, one for each new constant. Its keys are suffixes for the names of the
# new constants. The result is None if the op cannot be expressed in that layout.
IN_LAYOUT: dict[str, Callable[[Op, Layout], dict[str, Array] | None]] = {
    **dict.fromkeys(PADS, _amounts),
    **dict.fromkeys(("SPACE_TO_BATCH_ND", "BATCH_TO_SPACE_ND"), _block),
    **dict.fromkeys(REDUCTIONS, _reduced),
    "GATHER": lambda op, layout: None if axis_in(op, layout) is None else {},
}

# Ops that may concatenate, interleave, crop or copy whole channels.
INTERLEAVING = ("DEPTH_TO_SPACE", "CONCATENATION", "GATHER", "STRIDED_SLICE")


def channels_moved(op: Op) -> list[Tensor]:
    """For an op that only moves whole channels, such as a concatenation, its inputs in the order of the output's
    channels. For other ops, the list is empty. Ops on elements by channel, such as a batch norm or a sign, commute with
    such an op.
    """
    whole, x = op.output, op.inputs[0] if op.inputs else None
    joins = op.name == "CONCATENATION" and op.options.axis in (-1, len(whole.dims) - 1) and fused_activation(op) == 0
    keeps = x is not None and ((facts(op).reshapes and x.channels == whole.channels) or _crops(op) or copies_pixels(op))
    moves = joins or keeps or op.name == "DEPTH_TO_SPACE"
    return [tensor for tensor in (op.inputs if joins else op.inputs[:1]) if tensor is not None and moves]


def _crops(op: Op) -> bool:
    """True if a STRIDED_SLICE selects pixels with all their channels."""
    if op.name != "STRIDED_SLICE" or len(op.output.dims) != len(op.input(0).dims):
        return False
    masks = (getattr(op.options, name, 0) for name in ("ellipsis_mask", "new_axis_mask", "shrink_axis_mask"))
    strides = op.input(3).array
    in_order = strides is not None and strides[-1] == 1
    return in_order and not any(masks) and op.output.channels == op.input(0).channels


def floats_moved(op: Op) -> list[Tensor]:
    """The float inputs of an op that copies all elements of its output from them, in any order. A QUANTIZE may move
    from after such an op to before it."""
    inputs = op.inputs if op.name == "CONCATENATION" else op.inputs[:1] if facts(op).moves else []
    return [tensor for tensor in inputs if tensor is not None and tensor.type == "FLOAT32"]


# Ops that only select elements of their first input as elements of their output.
MOVING = (
    *("BATCH_TO_SPACE_ND", "BROADCAST_TO", "DEPTH_TO_SPACE", "GATHER", "MIRROR_PAD", "RESIZE_NEAREST_NEIGHBOR"),
    *("REVERSE_V2", "SLICE", "SPACE_TO_DEPTH", "SPLIT_V", "STRIDED_SLICE", "TILE", "TRANSPOSE", "UNPACK"),
)
# Ops that compare values and select one, such as a maximum.
COMPARING = ("MAXIMUM", "MAX_POOL_2D", "MINIMUM", "REDUCE_MAX", "REDUCE_MIN")
# For each op, the inputs from which it selects the elements of its outputs.
_PICKED: dict[str, tuple[int, ...]] = {
    **dict.fromkeys((*MOVING, "MAX_POOL_2D", "REDUCE_MAX", "REDUCE_MIN"), (0,)),
    **dict.fromkeys(("MAXIMUM", "MINIMUM"), (0, 1)),
    **dict.fromkeys(("SELECT", "SELECT_V2"), (1, 2)),
    "SPLIT": (1,),
}
_JOINING = ("CONCATENATION", "PACK")


def picked_from(op: Op) -> tuple[int, ...]:
    """Returns the inputs from which an op selects all elements of its outputs. The list is empty for an op that
    computes.
    """
    if fused_activation(op) != 0:
        return ()
    if op.name in _JOINING:
        return tuple(range(len(op.inputs)))
    if op.name in PADS and pads_nothing(op):
        return (0,)
    return _PICKED.get(op.name, (0,) if facts(op).reshapes else ())
