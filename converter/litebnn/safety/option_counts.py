"""Checks options that count an op's operands, or that name axes. They must fit the operands."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from litebnn.graph.graph import Op, Tensor


def option_mistakes(op: Op) -> Iterator[str]:
    """Yields the reasons why an op's options make runtimes access memory out of bounds."""
    kind, least, check = _CHECKS.get(op.code.builtin, ("", 0, None))
    if check is None:
        return
    if op.options.table != kind:
        yield f"options {op.options.table or 'are missing'}, expected {kind}"
    elif len(op.inputs) < least or None in op.inputs or not op.outputs:
        yield f"{len(op.inputs)} inputs and {len(op.outputs)} outputs, expected {least} and 1 at least"
    else:
        yield from check(op)


def _splits(op: Op) -> Iterator[str]:
    if op.options.num_splits != len(op.outputs):
        yield f"num_splits is {op.options.num_splits}, and it has {len(op.outputs)} outputs"


def _unpacks(op: Op) -> Iterator[str]:
    if op.options.num != len(op.outputs):
        yield f"num is {op.options.num}, and it has {len(op.outputs)} outputs"


def _packs(op: Op) -> Iterator[str]:
    if op.options.values_count != len(op.inputs):
        yield f"values_count is {op.options.values_count}, and it has {len(op.inputs)} inputs"


def _named_axes(op: Op, rank: int, *keys: str) -> Iterator[str]:
    """Checks options of StableHLO ops that list axes, in which each axis may occur once."""
    for key in keys:
        axes = _listed(op, key)
        if any(not 0 <= axis < rank for axis in axes) or len(set(axes)) < len(axes):
            yield f"{key} is {axes}, expected some of {rank} axes"


def _listed(op: Op, key: str) -> list[int]:
    value = getattr(op.options, key, None)
    return [] if value is None else [int(number) for number in np.ravel(value)]


def _picks_windows(op: Op, window: Tensor, windows: str, left_out: str, starts: str) -> Iterator[str]:
    """Checks STABLEHLO_GATHER and SCATTER. Both select windows of the first operand, at positions that the second
    operand lists."""
    source, indices = op.input(0), op.input(1)
    rank, vector = len(source.dims), int(op.options.index_vector_dim)
    if not vector < len(indices.dims):
        yield f"index_vector_dim is {vector}, expected 0 to {len(indices.dims) - 1}"
        return
    yield from _named_axes(op, rank, left_out, starts)
    yield from _named_axes(op, len(window.dims), windows)
    counts = {key: len(_listed(op, key)) for key in (windows, left_out, starts)}
    if counts[windows] + counts[left_out] != rank:
        yield f"{windows} and {left_out} have {counts[windows]} and {counts[left_out]} axes, expected {rank} in all"
    if counts[windows] + len(indices.dims) - 1 != len(window.dims):
        yield f'"{window.name}" has {len(window.dims)} axes, expected {counts[windows] + len(indices.dims) - 1}'
    kept = [size for axis, size in enumerate(window.dims) if axis not in _listed(op, windows)]
    listed = [size for axis, size in enumerate(indices.dims) if axis != vector]
    if len(kept) == len(listed) and any(-1 not in (a, b) and a != b for a, b in zip(kept, listed, strict=True)):
        yield f'"{window.name}" has {kept} windows, expected {listed}'
    if indices.dims[vector] not in (-1, counts[starts]):
        yield f"{starts} has {counts[starts]} axes, expected {indices.dims[vector]}"


def _stablehlo_gather(op: Op) -> Iterator[str]:
    yield from _picks_windows(op, op.output, "offset_dims", "collapsed_slice_dims", "start_index_map")
    sizes, dims = _listed(op, "slice_sizes"), op.input(0).dims
    if len(sizes) != len(dims) or any(known >= 0 and size > known for size, known in zip(sizes, dims, strict=True)):
        yield f"slice_sizes are {sizes} of a tensor of shape {list(dims)}"


def _stablehlo_scatter(op: Op) -> Iterator[str]:
    names = "update_window_dims", "inserted_window_dims", "scatter_dims_to_operand_dims"
    yield from _picks_windows(op, op.input(2), *names)


# For each op: the kind of its options, the minimum number of its inputs, and the function that checks it.
_CHECKS: dict[str, tuple[str, int, Callable[[Op], Iterator[str]]]] = {
    "PACK": ("PackOptions", 1, _packs),
    "SPLIT": ("SplitOptions", 2, _splits),
    "SPLIT_V": ("SplitVOptions", 3, _splits),
    "STABLEHLO_GATHER": ("StablehloGatherOptions", 2, _stablehlo_gather),
    "STABLEHLO_SCATTER": ("StablehloScatterOptions", 3, _stablehlo_scatter),
    "UNPACK": ("UnpackOptions", 1, _unpacks),
}
