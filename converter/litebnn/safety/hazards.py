"""Checks a model for hazards: properties that make a runtime access memory out of bounds, because it assumes that no
model has them.

These checks go beyond the needs of the rewrites (`graph.validate`), and cover ops and tensors that litebnn does not
read. Shapes, indices and types that are known only at run time cannot be checked here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

from litebnn.errors import ConversionError
from litebnn.graph.graph import NUMPY_TYPES, Model, Op, Tensor
from litebnn.graph.op_facts import facts
from litebnn.safety.control_dependencies import check_control_dependencies
from litebnn.safety.custom_ops import check_custom_ops

_MOST_BYTES = 1 << 31
# Element types of objects that exist only inside the runtime. Programs can neither set such inputs nor read such
# outputs.
_HANDLES = ("RESOURCE", "VARIANT")


def check_model(model: Model) -> None:
    """Refuses a model whose tensors or operands would make a runtime access memory out of bounds, or which litebnn's
    ops refuse.

    Raises:
        ConversionError: the model has a hazard; the message names the op and the tensor.
    """
    for graph in (*model.graphs[:1], *(signature.graph for signature in model.signatures or ())):
        for tensor in (*graph.inputs, *graph.outputs):
            if tensor.type in _HANDLES:
                raise ConversionError(f'"{tensor.name}", an input or output of the model, is of type {tensor.type}')
    for graph in model.graphs:
        for tensor in graph.all_tensors():
            _check_size(tensor)
        for index, op in enumerate(graph.ops):
            for mistake in _mistakes(op):
                raise ConversionError(f"op {index} ({op.name}): {mistake}")
        check_custom_ops(graph)
    check_control_dependencies(model)


def check_loads(model: Model, what: str) -> None:
    """Checks litebnn's ops and their consumers as a runtime would, so that no result is returned that cannot load.

    Args:
        what: the name by which messages call the model.

    Raises:
        ConversionError: a runtime would refuse the model; the message says why.
    """
    try:
        for graph in model.graphs:
            check_custom_ops(graph)
        check_control_dependencies(model)
    except ConversionError as error:
        raise ConversionError(f"{what} would not load: {error}") from error


def _mistakes(op: Op) -> Iterator[str]:
    yield from _grids(op)
    check = _CHECKS.get(op.code.builtin)
    if check is not None and (not op.outputs or not op.inputs or op.inputs[0] is None):
        yield "the first input or output is missing"
    elif check is not None:
        yield from check(op)


def _check_size(tensor: Tensor) -> None:
    if any(size < 0 for size in tensor.shape) or any(size < -1 for size in tensor.dims):
        raise ConversionError(f'"{tensor.name}" has shape {list(tensor.shape)}')
    if any(known not in (-1, size) for known, size in zip(tensor.dims, tensor.shape, strict=True)):
        raise ConversionError(f'"{tensor.name}": shape {list(tensor.shape)} and signature {list(tensor.dims)} disagree')
    size = math.prod(tensor.shape) * (NUMPY_TYPES[tensor.type].itemsize if tensor.type in NUMPY_TYPES else 1)
    if size >= _MOST_BYTES:
        raise ConversionError(f'"{tensor.name}" has {size:,} bytes, expected less than 2 GiB')


def _grids(op: Op) -> Iterator[str]:
    """Checks the scales of ops on quantized values. Runtimes divide by the scales, and abort if there are none."""
    int8 = facts(op).int8
    for tensor in (*op.inputs, *op.outputs) if int8 is not None and not int8.same_parameters else ():
        if tensor is not None and not tensor.is_constant and tensor.type == "INT8" and tensor.quantization is None:
            yield f'"{tensor.name}" is INT8 without a scale'


def _keeps_elements(op: Op) -> Iterator[str]:
    source, result = op.input(0), op.output
    if min((*source.dims, *result.dims), default=0) >= 0 and math.prod(source.dims) != math.prod(result.dims):
        yield f'"{source.name}" has shape {list(source.dims)} and "{result.name}" {list(result.dims)}'


def _strided_slice(op: Op) -> Iterator[str]:
    source, operands = op.input(0), [_numbers(op.optional(place)) for place in (1, 2, 3)]
    given = [values for values in operands if values is not None]
    options = op.options
    masks = {key: int(getattr(options, f"{key}_mask", 0)) for key in ("begin", "shrink_axis", "ellipsis", "new_axis")}
    # A slice that adds a new axis consumes no axis of the source, and an ellipsis consumes any number of axes.
    adds_axes = masks["ellipsis"] or masks["new_axis"]
    if len({len(values) for values in given}) > 1 or (
        not adds_axes and source.shape and any(len(values) > len(source.shape) for values in given)
    ):
        yield f'begin, end and strides have {[len(values) for values in given]} numbers for "{source.name}"'
        return
    if operands[2] is not None and 0 in operands[2]:
        yield "a stride is 0"
    if operands[0] is None or adds_axes:
        return
    for axis, (begin, size) in enumerate(zip(operands[0], source.dims, strict=False)):
        picks_one = masks["shrink_axis"] >> axis & 1
        if size >= 0 and (picks_one or not masks["begin"] >> axis & 1) and not -size <= begin <= size - picks_one:
            yield f'begin {begin} lies outside of axis {axis} of "{source.name}", which has {size}'


def _slice(op: Op) -> Iterator[str]:
    source, begins, sizes = op.input(0), _numbers(op.optional(1)), _numbers(op.optional(2))
    for axis, (begin, size, whole) in enumerate(zip(begins or (), sizes or (), source.dims, strict=False)):
        if whole >= 0 and not (0 <= begin <= whole and -1 <= size <= whole - begin):
            yield f'{size} from {begin} lies outside of axis {axis} of "{source.name}", which has {whole}'


def _gather(op: Op) -> Iterator[str]:
    source, indices, axis = op.input(0), _numbers(op.optional(1)), int(getattr(op.options, "axis", 0))
    rank = len(source.dims)
    if rank and not -rank <= axis < rank:
        yield f"axis is {axis}, expected {-rank} to {rank - 1}"
    elif rank and indices and source.dims[axis] >= 0 and not 0 <= min(indices) <= max(indices) < source.dims[axis]:
        yield f'an index lies outside of axis {axis} of "{source.name}", which has {source.dims[axis]}'


def _axes(op: Op) -> Iterator[str]:
    rank = len(op.input(0).dims)
    for axis in _numbers(op.optional(1)) or ():
        if rank and not -rank <= axis < rank:
            yield f"axis {axis}, expected {-rank} to {rank - 1}"


def _axis_option(op: Op) -> Iterator[str]:
    rank, axis = max(len(op.input(0).dims), len(op.output.dims)), int(getattr(op.options, "axis", 0))
    if rank and not -rank <= axis < rank:
        yield f"axis is {axis}, expected {-rank} to {rank - 1}"


def _transpose(op: Op) -> Iterator[str]:
    order, rank = _numbers(op.optional(1)), len(op.input(0).dims)
    if (
        order is not None
        and rank
        and (max(map(abs, order), default=0) > rank or sorted(axis % rank for axis in order) != list(range(rank)))
    ):
        yield f"permutation {order} of {rank} axes"


def _amounts(op: Op) -> Iterator[str]:
    amounts = _numbers(op.optional(1))
    if amounts and min(amounts) < 0:
        yield f"amount {min(amounts)}, expected 0 at least"


def _numbers(tensor: Tensor | None) -> list[int] | None:
    """The integers of a constant tensor; None for other tensors."""
    array = None if tensor is None else tensor.array
    return None if array is None or array.dtype.kind not in "iu" else [int(value) for value in array.reshape(-1)]


_CHECKS: dict[str, Callable[[Op], Iterator[str]]] = {
    **dict.fromkeys(("RESHAPE", "SQUEEZE", "EXPAND_DIMS"), _keeps_elements),
    **dict.fromkeys(("MEAN", "SUM", "REDUCE_ALL", "REDUCE_ANY", "REDUCE_MAX", "REDUCE_MIN", "REDUCE_PROD"), _axes),
    **dict.fromkeys(("ARG_MAX", "ARG_MIN", "REVERSE_V2"), _axes),
    **dict.fromkeys(("CONCATENATION", "PACK", "UNPACK"), _axis_option),
    **dict.fromkeys(("MIRROR_PAD", "PAD", "PADV2", "TILE"), _amounts),
    "GATHER": _gather,
    "SLICE": _slice,
    "STRIDED_SLICE": _strided_slice,
    "TRANSPOSE": _transpose,
}
