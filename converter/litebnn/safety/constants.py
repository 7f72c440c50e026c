"""Checks constants that are not plain arrays: narrow types, strings, sparse weights and external files."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from litebnn.errors import ConversionError
from litebnn.graph import NUMPY_TYPES, Array, Tensor, bits_of_type

_POINTERS = ("RESOURCE", "VARIANT")


def check_constant(what: str, tensor: Tensor) -> None:
    """Checks the bytes of a constant against its shape.

    Raises:
        ConversionError: the constant does not fit; the message names the tensor.
    """
    data = tensor.buffer.data
    if data is None or not data.size:
        return
    if tensor.type in _POINTERS:
        raise ConversionError(f"{what}: it is a constant {tensor.type}, which only a runtime makes")
    count = math.prod(tensor.shape) if min(tensor.shape, default=1) >= 0 else -1
    for mistake in _mistakes(tensor, data, count):
        raise ConversionError(f"{what}: {mistake}")


def _mistakes(tensor: Tensor, data: Array, count: int) -> Iterator[str]:
    if tensor.is_sparse:
        stored = _stored(tensor.carried.sparsity, tensor.shape)
        if isinstance(stored, str):
            yield f"sparsity: {stored}"
            return
        count = stored
    if tensor.type == "STRING":
        yield from _strings(data, count)
    else:
        expected = max(count, 0) * bits_of_type(tensor.type)
        exact = tensor.type in NUMPY_TYPES
        if count < 0 or (data.size * 8 != expected if exact else data.size * 8 < expected):
            shape = f"{count} sparse values need" if tensor.is_sparse else f"{tensor.type} {list(tensor.shape)} needs"
            yield f"its buffer has {data.size} bytes, {shape} {-(-expected // 8)}"


def _strings(data: Array, count: int) -> Iterator[str]:
    """Checks TensorFlow Lite's encoding of strings: their number, start offsets, end offset, and bytes."""
    numbers = data[: data.size // 4 * 4].view("<i4")
    if not numbers.size or numbers[0] != count or numbers.size < count + 2:
        yield f"its buffer does not begin with {count} strings"
        return
    offsets = [4 * (count + 2), *(int(offset) for offset in numbers[1 : count + 2]), data.size]
    if any(before > after for before, after in itertools.pairwise(offsets)):
        yield f"a string lies outside of its buffer of {data.size} bytes"


def _stored(sparsity: Any, shape: tuple[int, ...]) -> int | str:
    """The number of values that a sparse constant stores, or the reason why it does not fit the shape."""
    order, block_map = _listed(sparsity.traversalOrder), _listed(sparsity.blockMap)
    levels, rank = sparsity.dimMetadata or [], len(shape)
    slots = [*range(rank + len(block_map))]
    if sorted(order[:rank]) != slots[:rank] or sorted(order[rank:]) != slots[rank:] or len(levels) != len(slots):
        return f"traversal_order {order} of {len(levels)} dim_metadata, expected the {rank} axes and then the blocks"
    if any(not 0 <= axis < rank for axis in block_map) or len(set(block_map)) != len(block_map):
        return f"block_map {block_map}, expected some of {rank} axes"
    sizes = [*shape]
    for block, axis in enumerate(block_map):
        level = levels[order.index(rank + block)]
        if level.format or level.denseSize < 1 or sizes[axis] % level.denseSize:
            return f"block {block} has size {level.denseSize}, expected a divisor of {sizes[axis]}"
        sizes[axis] //= level.denseSize
        sizes.append(level.denseSize)
    count = 1
    for axis, level in zip(order, levels, strict=True):
        size = sizes[axis]
        if not level.format:
            if level.denseSize != size:
                return f"dense_size of axis {axis} is {level.denseSize}, expected {size}"
            count *= size
            continue
        segments, indices = (
            _listed(getattr(each, "values", None)) for each in (level.arraySegments, level.arrayIndices)
        )
        if len(segments) != count + 1 or segments[0] != 0 or segments[-1] != len(indices):
            return f"array_segments of axis {axis} do not end at its {len(indices)} array_indices"
        for begin, end in itertools.pairwise(segments):
            row = indices[begin:end]
            if begin > end or any(not 0 <= index < size for index in row) or row != sorted(set(row)):
                return f"array_indices of axis {axis} lie outside of it, which has {size}, or in no order"
        count = len(indices)
    return count


def _listed(values: Any) -> list[int]:
    return [] if values is None else [int(value) for value in np.ravel(values)]


def check_external(carried: Any, tensors: Iterable[Tensor]) -> None:
    """Checks constants in external files against the model's list of external buffers.

    Args:
        carried: the model as the schema's object API reads it. Models of older schemas have no such list.

    Raises:
        ConversionError: a buffer does not fit; the message names the tensor.
    """
    groups, listed = (getattr(carried, field, None) or [] for field in ("externalBufferGroups", "externalBuffers"))
    by_id = {item.id: item for item in listed}
    if len(by_id) < len(listed):
        raise ConversionError("external_buffers: two have the same id")
    for item in listed:
        if item.group >= len(groups):
            raise ConversionError(
                f"external buffer {item.id}: group {item.group} does not exist (there are {len(groups)})"
            )
    for tensor in tensors:
        external = getattr(tensor.carried, "externalBuffer", 0)
        needed = -(-max(math.prod(tensor.shape), 0) * bits_of_type(tensor.type) // 8)
        if external and (external not in by_id or tensor.is_constant or by_id[external].length < needed):
            raise ConversionError(
                f'"{tensor.name}": external buffer {external}, expected one of {len(by_id)} with at least {needed} '
                "bytes, and no other buffer"
            )
