"""Recognizes signs in the forms that exporters write.

A sign is a select of 1 and -1 by any condition. A step function of one tensor with these two values is a sign too, in
any form (`values.py`). Functions with other values (ternary, several bits) are not signs. Between the ops of a form,
values may be quantized. In this case, only the signs of the values are known exactly.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from litebnn.analysis.affine import next_level, per_channel
from litebnn.analysis.match import bits_of, is_broadcast, times_repeated, uniform
from litebnn.analysis.numbers.lattices import lattice_of
from litebnn.analysis.numbers.ranges import range_of
from litebnn.analysis.quantization import is_quantized, numbers_of_grid
from litebnn.analysis.rounding import rounded_values
from litebnn.analysis.transfers import SELECTS, Values
from litebnn.analysis.values import choices_of, values_of
from litebnn.graph import Array, Graph, Tensor

# For each comparison, the comparison that is equivalent after its operands are swapped.
_MIRRORED = {"GREATER_EQUAL": "LESS_EQUAL", "GREATER": "LESS", "LESS_EQUAL": "GREATER_EQUAL", "LESS": "GREATER"}


@dataclass(frozen=True)
class Sign:
    """A Sign is +1 where x is at least the threshold `level`, and -1 elsewhere. If `falls` is true, it is the opposite.

    `level` is float32 [1] or [channels]. For a quantized x it is a number that x can represent, and for a boolean x (0
    or 1) it is 1.
    """

    x: Tensor
    level: Array
    falls: bool = False

    def negated(self) -> Sign:
        return replace(self, falls=not self.falls)


def find_sign(graph: Graph, tensor: Tensor, *, assume_nonzero: bool = False) -> Sign | None:
    """Returns the description of `tensor` as a sign; None if `tensor` is not a sign.

    Args:
        assume_nonzero: True to ignore a third value at a single number, such as the 0 of SIGN at zero.
    """
    sign = None
    if graph.producer(tensor, *SELECTS) is not None:  # its condition may be any function of several tensors
        sign = _of_values(graph, choices_of(graph, tensor), assume_nonzero)
    sign = sign or _of_values(graph, values_of(graph, tensor), assume_nonzero)
    return None if sign is None or sign.x is tensor else sign


def _of_values(graph: Graph, function: Values, assume_nonzero: bool) -> Sign | None:
    function = occurring(graph, function)
    x, values, edges = function.x, function.values, function.edges
    if x is None or not function.is_known:
        return None
    if assume_nonzero and len(edges) == 2 and _follows(edges[1], edges[0], x):
        values, edges = values[[0, 2]], edges[:1]
    lowest = range_of(graph, x)[0]
    if np.isfinite(lowest) and np.all(edges <= lowest):  # the function always has its last value
        edges, values = np.array([lowest], np.float32), np.array([-1, 1]) * values[-1]
    if len(edges) != 1 or abs(values[0]) != 1 or values[1] != -values[0]:
        return None
    if bits_of(graph, x) is not None and values[1] == -1:  # the next layer's weights absorb the negation
        return None
    if x.type == "BOOL":
        sign = _of_boolean(graph, x)
        return sign if values[1] == 1 else sign.negated()
    return Sign(x, edges, falls=bool(values[1] == -1))


def occurring(graph: Graph, function: Values) -> Values:
    """Returns the same step function without the values that its tensor x never gives: x is never below or above an
    edge, or never 0. At least two values stay.
    """
    x, edges = function.x, function.edges
    if x is None or len(edges) < 2:
        return function
    at_zero = [i for i in range(len(edges) - 1) if edges[i] == 0 and _follows(edges[i + 1], edges[i], x)]
    lattice = lattice_of(graph, x) if at_zero else None
    if lattice is not None and lattice.is_never_zero and not lattice.is_of_signs:
        function = function.without(at_zero[0] + 1)
    low, high = range_of(graph, x)
    first, last = np.searchsorted(function.edges, [low, high], side="right").tolist()
    first = min(first, max(last - 1, 0))
    return function.between(first, max(last, first + 1))


def _follows(number: float, other: float, x: Tensor) -> bool:
    """True if the tensor x can have no value between `other` and `number`."""
    numbers = numbers_of_grid(x)
    if numbers is None:
        return bool(number == next_level(np.array([other], np.float32), up=True)[0])
    return bool(np.count_nonzero((numbers >= other) & (numbers < number)) == 1)


def _of_boolean(graph: Graph, tensor: Tensor) -> Sign:
    """Returns the sign that is +1 where the boolean tensor is true."""
    truth = True
    while (op := graph.producer(tensor, "LOGICAL_NOT")) is not None:
        truth, tensor = not truth, op.input(0)
    sign = _of_comparison(graph, tensor) or _of_levels(graph, tensor) or Sign(tensor, np.ones(1, np.float32))
    return sign if truth else sign.negated()


def _of_levels(graph: Graph, tensor: Tensor) -> Sign | None:
    """Returns the sign that is +1 where a boolean function of a quantized tensor is true."""
    function = values_of(graph, tensor)
    if function.x is None or function.x.dims != tensor.dims or numbers_of_grid(function.x) is None:
        return None
    return _of_values(graph, replace(function, values=2 * function.values - 1), assume_nonzero=False)


def _of_comparison(graph: Graph, tensor: Tensor) -> Sign | None:
    """Returns the sign that is +1 where the comparison of a float with a number, or with a vector of channels, is
    true."""
    op = graph.producer(tensor, *_MIRRORED)
    if op is None:
        return None
    left, right = op.input(0), op.input(1)
    for x, other, name in ((left, right, op.name), (right, left, _MIRRORED[op.name])):
        number = uniform(other)
        level = per_channel(other, x.channels) if number is None else np.full(1, number, np.float32)
        if level is None or x.type != "FLOAT32" or x.is_constant or x.dims != tensor.dims:
            continue
        if name in ("GREATER", "LESS_EQUAL"):  # x > n is x >= the number after n
            level = next_level(level, up=True)
        if np.all(np.isfinite(level)):
            return Sign(x, level, falls=name in ("LESS", "LESS_EQUAL"))
    return None


def find_scaled_step(graph: Graph, tensor: Tensor) -> tuple[Values, Tensor] | None:
    """Returns a step function of two numbers and the scale by which a tensor multiplies it. The scale is computed when
    the model runs, and broadcast, as in `where(x >= 0, k, -k)`. Straight-through estimators may be around it.
    """
    function = values_of(graph, tensor)
    if function.x is None or len(function.edges) != 1 or len(function.linear_terms) != 1 or np.any(function.values):
        return None
    [(scale, factors)] = function.linear_terms.items()
    if (op := graph.producer(scale, "BROADCAST_TO")) is not None:
        scale = op.input(0)
    plain = function.x.type == "FLOAT32" and function.x.dims == tensor.dims and np.all(np.isfinite(factors))
    step = replace(function, values=factors, linear_terms={})
    return (step, scale) if plain and is_broadcast(scale, tensor) else None


def find_two_values(graph: Graph, tensor: Tensor) -> Values | None:
    """Returns the two values of a float or quantized tensor, if a boolean, a sign or a threshold of a tensor selects
    them.

    The tensor is a boolean cast to a number, a select of two numbers, an unpacked sign or a number rounded to one of
    two. Arithmetic with numbers, straight-through estimators and rounding may follow. The source may also be quantized,
    so that its levels decide between the values. In this case, values that differ by at most a quantization step count
    as one value.
    """
    if tensor.type == "BOOL":
        return None
    # The function `choices_of` describes the values if a single boolean tensor selects them. If several booleans do,
    # because one sign is compared several times, `values_of` may still describe them as a function of this sign.
    of_signs = values_of(graph, tensor)
    functions = (choices_of(graph, tensor), of_signs)
    occurring_only = (occurring(graph, one) for one in functions)
    found = next((one for one in (*functions, *occurring_only) if _are_chosen(tensor, one)), None)
    if found is None and (rounded := rounded_values(graph, tensor)) is not None and _are_chosen(tensor, rounded):
        return rounded
    return found or (_two_of_levels(tensor, of_signs) if is_quantized(tensor) else None)


def _are_chosen(tensor: Tensor, values: Values) -> bool:
    x = values.x
    if x is None or len(values.edges) != 1 or not values.is_known or not np.all(np.isfinite(values.values)):
        return False
    return x.dims == tensor.dims or (x.type == "BOOL" and times_repeated(x.dims, tensor.dims) is not None)


def _two_of_levels(tensor: Tensor, function: Values) -> Values | None:
    """Returns the two values of a step function with a single jump. Apart from the jump, the values may change by at
    most one quantization step, and the result has one value for each side.
    """
    values, edges, step = function.values, function.edges, function.step
    if function.x is None or function.x.dims != tensor.dims or not len(edges) or not function.is_known:
        return None
    jump = int(np.argmax(np.abs(np.diff(values))))
    sides = values[: jump + 1], values[jump + 1 :]
    low, high = ((side.min() + side.max()) / 2 for side in sides)
    if max(map(np.ptp, sides)) > 2 * step or not abs(high - low) > 4 * step:
        return None
    return replace(function, edges=edges[jump : jump + 1], values=np.array([low, high]))
