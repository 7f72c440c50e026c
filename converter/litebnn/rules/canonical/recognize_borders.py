"""Copies of parts of a tensor, assembled by masks or coordinates, become one GATHER for each axis.

PyTorch's exporter writes circular padding as pads and slices, between which SELECTs with constant masks choose. It pads
a Conv1D by repeated or reflected values with a GATHER_ND between transposes. Other authors concatenate slices.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from litebnn.analysis.layouts import gathered_axis
from litebnn.analysis.match import fused_activation, transpose_order, uniform
from litebnn.analysis.padding import PADS, constant_padding
from litebnn.analysis.transfers import SELECTS
from litebnn.analysis.walks import ops_upstream
from litebnn.graph import Array, Graph, Op, Tensor, builtin_op, constant, derived, like
from litebnn.rules.build.notes import Notes
from litebnn.rules.build.ops import transposed
from litebnn.rules.build.signs import pad_with

# The ops with which the copying ends.
_LAST = (*SELECTS, "CONCATENATION", "GATHER_ND")
# The place of an element that is copied is its index in the flattened source. An element may also be a constant.
_ZERO, _OTHER = -1, -2
_MOST_PLACES = 1 << 22


def recognize_borders(graph: Graph, notes: Notes) -> bool:
    changed = False
    for op in reversed(graph.ops):
        if graph.holds(op) and op.name in _LAST and not graph.is_output(op.output):
            changed |= _recognized(graph, op)
    return changed


def _recognized(graph: Graph, op: Op) -> bool:
    ops = ops_upstream(graph, op.output, _moved)
    moves = [each for each in ops or () if _moved(each)]
    source, places = _traced(graph, moves) if op in moves else (None, None)
    axes = None if source is None or places is None else _by_axis(places, source.dims)
    if source is None or axes is None:
        return False
    kept, order, indices = axes
    grows = any(len(taken) > source.dims[axis] for axis, taken in zip(order, indices, strict=True))
    if op.name == "CONCATENATION" and not grows:  # channel shuffles
        return False
    copied = transposed(graph, source, order, before=op)
    for axis, taken in enumerate(indices):
        copied = _gathered(graph, copied, axis, taken, before=op)
    amounts = [(own[0], size - own[-1] - 1) for own, size in zip(kept, op.output.dims, strict=True)]
    graph.bypass(op, pad_with(graph, copied, np.asarray(amounts), 0.0, before=op))
    for each in reversed(moves[:-1]):
        if not graph.is_read(each.output):
            graph.remove(each)
    return True


def _gathered(graph: Graph, source: Tensor, axis: int, taken: Array, *, before: Op) -> Tensor:
    if np.array_equal(taken, np.arange(source.dims[axis])):
        return source
    name = derived(source.name, f"/gathered{axis}")
    result = like(source, name, dims=(*source.dims[:axis], len(taken), *source.dims[axis + 1 :]))
    inputs = [source, constant(derived(name, "/indices"), taken.astype(np.int32))]
    return graph.insert(builtin_op("GATHER", inputs, result, axis=axis), before=before).output


def _moved(op: Op) -> list[Tensor]:
    """Returns the inputs of which an op copies elements, if constants say which; empty for other ops."""
    if op.name not in _COPIES or fused_activation(op) != 0 or not op.inputs or None in op.inputs:
        return []
    first, *others = [op.input(i) for i in range(len(op.inputs))]
    data, parameters = {
        "CONCATENATION": ([first, *others], []),
        **dict.fromkeys(SELECTS, (others, [first])),
    }.get(op.name, ([first], others))
    moved = [tensor for tensor in data if not tensor.is_constant]
    return moved if all(each.array is not None for each in parameters) and min(op.output.dims, default=0) > 0 else []


def _traced(graph: Graph, moves: Sequence[Op]) -> tuple[Tensor | None, Array | None]:
    """Returns the only tensor from which ops copy elements, and the places of the elements that the last op has."""
    made = {op.output for op in moves}
    read = dict.fromkeys(tensor for op in moves for tensor in _moved(op) if tensor not in made)
    source = next(iter(read), None)
    sizes = [math.prod(op.output.dims) for op in moves]
    if source is None or len(read) > 1 or min(source.dims, default=0) < 1 or source.quantization is not None:
        return None, None
    if source.type != "FLOAT32" or max(*sizes, math.prod(source.dims)) > _MOST_PLACES:
        return None, None
    known = {source: np.arange(math.prod(source.dims), dtype=np.int32).reshape(source.dims)}
    for op, size in zip(moves, sizes, strict=True):
        graph.spend(size)
        data = [known[tensor] if tensor in known else _constant_places(tensor) for tensor in op.inputs if tensor]
        try:
            places = _COPIES[op.name](op, data)
        except (IndexError, TypeError, ValueError):  # NumPy's errors for parameters that do not fit
            return None, None
        if places is None or places.shape != op.output.dims:
            return None, None
        known[op.output] = places
    return source, known[moves[-1].output]


def _constant_places(tensor: Tensor) -> Array:
    return np.full(tensor.shape, _ZERO if uniform(tensor) == 0 else _OTHER, np.int32)


def _by_axis(places: Array, dims: tuple[int, ...]) -> tuple[list[Array], list[int], list[Array]] | None:
    """Describes copied elements as a transpose, indices along each axis, and zeros around them.

    Returns:
        The rows that are not zeros, the order of the transpose, and the rows that are copied. The rows are indices
        along each axis. None if the elements are not copied axis by axis.
    """
    inside, axes = places >= 0, range(places.ndim)
    if places.ndim != len(dims) or np.any(places == _OTHER) or not np.any(inside):
        return None
    kept = [np.flatnonzero(inside.any(axis=tuple(other for other in axes if other != axis))) for axis in axes]
    places = places[np.ix_(*kept)]
    if np.any(places < 0) or any(np.any(np.diff(own) != 1) for own in kept):
        return None
    coordinates = np.unravel_index(places, dims)
    order: dict[int, int] = {}
    for axis, own in enumerate(coordinates):
        moving = [j for j in axes if np.any(own != own.take([0], axis=j))]
        if len(moving) > 1 or order.keys() & moving:
            return None
        order.update(dict.fromkeys(moving, axis))
    fixed = (axis for axis in axes if axis not in order.values())
    turns = [order[axis] if axis in order else next(fixed) for axis in axes]
    indices = [np.moveaxis(coordinates[turn], j, 0).reshape(places.shape[j], -1)[:, 0] for j, turn in enumerate(turns)]
    return kept, turns, indices


def _padded(op: Op, data: list[Array]) -> Array | None:
    padding = constant_padding(op)
    if padding is None or np.any(padding.amounts < 0):
        return None
    return np.pad(data[0], padding.amounts, constant_values=_ZERO if padding.value == 0 else _OTHER)


def _sliced(op: Op, data: list[Array]) -> Array:
    begins, sizes = (np.asarray(op.input(index).array).ravel() for index in (1, 2))
    return data[0][tuple(slice(begin, begin + size) for begin, size in zip(begins, sizes, strict=True))]


def _strided(op: Op, data: list[Array]) -> Array | None:
    if any(getattr(op.options, f"{name}_mask", 0) for name in ("ellipsis", "new_axis", "shrink_axis")):
        return None
    masks = [int(getattr(op.options, f"{name}_mask", 0)) for name in ("begin", "end")]
    numbers = [np.asarray(op.input(index).array).ravel().tolist() for index in (1, 2, 3)]
    bounds = enumerate(zip(*numbers, strict=True))
    return data[0][
        tuple(
            slice(None if masks[0] >> axis & 1 else begin, None if masks[1] >> axis & 1 else end, stride)
            for axis, (begin, end, stride) in bounds
        )
    ]


def _selected(op: Op, data: list[Array]) -> Array | None:
    mask, whole = np.asarray(op.input(0).array), op.output.dims
    shapes = {array.shape for array in data[1:]}
    fits = shapes <= {whole, ()} and mask.shape in (whole, ()) and mask.dtype == np.bool_
    return np.broadcast_to(np.where(mask, *data[1:]), whole) if fits else None


def _turned(op: Op, data: list[Array]) -> Array | None:
    order = transpose_order(op)
    return None if order is None else data[0].transpose(order)


def _gathered_places(op: Op, data: list[Array]) -> Array | None:
    axis, indices = gathered_axis(op), np.asarray(op.input(1).array)
    return None if axis is None or np.any(indices < 0) else data[0].take(indices, axis=axis)


def _gathered_by_coordinates(op: Op, data: list[Array]) -> Array | None:
    coordinates = np.asarray(op.input(1).array)
    rows = math.prod(coordinates.shape[:-1])
    depth = coordinates.shape[-1] if coordinates.ndim else 0
    if not depth or np.any(coordinates < 0) or rows * math.prod(data[0].shape[depth:]) > _MOST_PLACES:
        return None
    places: Array = data[0][tuple(np.moveaxis(coordinates, -1, 0))]
    return places


# For each op, a function that computes the places of its elements from those of its inputs.
_COPIES: dict[str, Callable[[Op, list[Array]], Array | None]] = {
    **dict.fromkeys(PADS, _padded),
    **dict.fromkeys(SELECTS, _selected),
    "CONCATENATION": lambda op, data: np.concatenate(data, axis=op.options.axis),
    "GATHER": _gathered_places,
    "GATHER_ND": _gathered_by_coordinates,
    "SLICE": _sliced,
    "STRIDED_SLICE": _strided,
    "TRANSPOSE": _turned,
}
