"""Arrays that hold the same values in another order of axes."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator

import numpy as np

from litebnn.graph import Array


def placed(candidates: Iterable[Array], expected: Array, turned: tuple[int, ...]) -> Array | None:
    """One of the result's tensors in the shape of the source's, None where none has as many values.

    Args:
        turned: as `Pair` holds it; of all orders of these axes that is taken in which the values are nearest.
    """
    found = [
        values.reshape([axes[axis] for axis in order]).transpose(np.argsort(order)).reshape(expected.shape)
        for values in candidates
        for axes, order in _orders(values.shape, expected, turned)
    ]
    return _nearest(found, expected)


def moved(source: Array, actual: Array, turned: tuple[int, ...]) -> Array | None:
    """The source's tensor in the shape and the order of axes of the result's, as `placed` has it the other way."""
    return _nearest(list(arrangements(source, actual.shape, turned)), actual)


def arrangements(source: Array, shape: tuple[int, ...], turned: tuple[int, ...]) -> Iterator[Array]:
    """The source's tensor in that shape of the result's, in each order that its axes may have there."""
    for axes, order in _orders(shape, source, turned):
        yield source.reshape(axes).transpose(order).reshape(shape)


def _nearest(found: list[Array], wanted: Array) -> Array | None:
    if len(found) == 1:
        return found[0]
    numbers = wanted.astype(np.float64)
    return min(found, key=lambda values: float(np.nansum(np.abs(values - numbers))), default=None)


def _orders(
    shape: tuple[int, ...], source: Array, turned: tuple[int, ...]
) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
    """The axes of the source's tensor, and the orders in which a result of that shape may have them."""
    if math.prod(shape) != source.size:
        return
    if len(turned) < 2:  # an axis of one may have moved
        yield source.shape, tuple(range(source.ndim))
        return
    axes = (source.shape[0], *turned[1:])
    for order in itertools.permutations(range(len(axes))):
        sizes = tuple(axes[axis] for axis in order)
        if _sizes(shape) == _sizes(sizes) or (len(shape) < len(axes) and order[0] == 0):
            yield axes, order


def _sizes(shape: Iterable[int]) -> list[int]:
    """A shape without its axes of one, which may be anywhere."""
    return [size for size in shape if size != 1]
