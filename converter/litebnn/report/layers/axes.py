"""Arrays that hold the same values in another order of axes."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator

import numpy as np

from litebnn.graph import Array


def placed(candidates: Iterable[Array], expected: Array, turned: tuple[int, ...]) -> Array | None:
    """One of these tensors in the shape of the source's, None where none has as many values.

    Args:
        turned: as `_Pair` holds it; of all orders of these axes that is taken in which the values are nearest.
    """
    found = [
        values.reshape([axes[axis] for axis in order]).transpose(np.argsort(order)).reshape(expected.shape)
        for values in candidates
        for axes, order in orders_of(values, expected, turned)
    ]
    if len(found) == 1:
        return found[0]
    numbers = expected.astype(np.float64)
    return min(found, key=lambda values: float(np.nansum(np.abs(values - numbers))), default=None)


def orders_of(
    values: Array, expected: Array, turned: tuple[int, ...]
) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
    """The axes of the source's tensor, and the orders in which a result of as many values may have them."""
    if values.size != expected.size:
        return
    if len(turned) < 2:  # an axis of one may have moved
        yield expected.shape, tuple(range(expected.ndim))
        return
    axes = (expected.shape[0], *turned[1:])
    for order in itertools.permutations(range(len(axes))):
        shape = tuple(axes[axis] for axis in order)
        if _sizes(values.shape) == _sizes(shape) or (values.ndim < len(axes) and order[0] == 0):
            yield axes, order


def _sizes(shape: Iterable[int]) -> list[int]:
    """A shape without its axes of one, which may be anywhere."""
    return [size for size in shape if size != 1]
