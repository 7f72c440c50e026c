"""Finding signs in the forms that exporters leave them in.

A sign is a select of 1 and -1 on any condition, or a step function of one tensor that takes these two values
(`steps.py` beside), however it is written. Functions of other values (ternary, several bits) are none. Between the ops
of a form, values may be rounded to a grid, and of what they are then no more is said than what the sign needs.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from litebnn.graph import Array, Graph, Op, Tensor
from litebnn.rewriting.affine import LEAST, next_level, per_channel
from litebnn.rewriting.int8 import is_quantized, lowest_value, numbers_of_grid
from litebnn.rewriting.match import bits_of, number_of, times_repeated, uniform
from litebnn.rewriting.signs.step_function import Steps
from litebnn.rewriting.signs.steps import steps_of

_COMPARISONS = ("GREATER_EQUAL", "GREATER", "LESS_EQUAL", "LESS")
# A comparison is the mirrored one with its sides exchanged, and the opposite of the negated one.
_MIRRORED = {"GREATER_EQUAL": "LESS_EQUAL", "GREATER": "LESS", "LESS_EQUAL": "GREATER_EQUAL", "LESS": "GREATER"}
_NEGATED = {"GREATER_EQUAL": "LESS", "GREATER": "LESS_EQUAL", "LESS_EQUAL": "GREATER", "LESS": "GREATER_EQUAL"}


@dataclass(frozen=True)
class Sign:
    """+1 where `comparison(x, threshold)` holds or, without a comparison, where the boolean x is `truth`; else -1.

    The threshold is one number, or float32 [channels]; of a quantized x, a number of its grid.
    """

    x: Tensor
    comparison: str | None
    threshold: float | Array = 0.0
    truth: bool = True

    def negated(self) -> Sign:
        comparison = None if self.comparison is None else _NEGATED[self.comparison]
        return Sign(self.x, comparison, self.threshold, not self.truth)


def find_sign(graph: Graph, tensor: Tensor, *, assume_nonzero: bool = False) -> Sign | None:
    """What `tensor` is the sign of, where it is one.

    Args:
        assume_nonzero: what a function of three values is at one number alone, as SIGN at zero, does not matter.
    """
    op = graph.producer(tensor)
    if op is None:
        return None
    selected = _select(graph, op) if op.name in ("SELECT", "SELECT_V2") else None
    sign = selected or _of_steps(graph, steps_of(graph, tensor), assume_nonzero)
    return None if sign is None or sign.x is tensor else sign


def _of_steps(graph: Graph, steps: Steps, assume_nonzero: bool) -> Sign | None:
    x, values, edges = steps.x, steps.values, steps.edges
    if x is None or not steps.is_known:
        return None
    if assume_nonzero and len(edges) == 2 and _follows(edges[1], edges[0], x):
        values, edges = values[[0, 2]], edges[:1]
    lowest = lowest_value(graph, x)
    if np.isfinite(lowest):  # what the function is below does not matter
        edges = edges[edges > lowest]
        values = values[-len(edges) - 1 :]
        if len(edges) == 0:
            edges, values = np.array([lowest], np.float32), np.array([-1, 1]) * values
    if len(edges) != 1 or abs(values[0]) != 1 or values[1] != -values[0]:
        return None
    if bits_of(graph, x) is not None and values[1] == -1:  # two values, of which the next layer's weights take care
        return None
    if x.type == "BOOL":
        sign = _of_boolean(graph, x)
        return sign if values[1] == 1 else sign.negated()
    if edges[0] == LEAST:
        return Sign(x, "GREATER" if values[1] == 1 else "LESS_EQUAL", 0.0)
    return Sign(x, "GREATER_EQUAL" if values[1] == 1 else "LESS", float(edges[0]))


def _follows(number: float, other: float, x: Tensor) -> bool:
    """Whether x holds no number between the two."""
    numbers = numbers_of_grid(x)
    if numbers is None:
        return bool(number == next_level(np.array([other], np.float32), up=True)[0])
    return bool(np.count_nonzero((numbers >= other) & (numbers < number)) == 1)


def _of_boolean(graph: Graph, tensor: Tensor) -> Sign:
    """The sign that is +1 where the boolean tensor is true."""
    op = graph.producer(tensor)
    truth = True
    while op is not None and op.name == "LOGICAL_NOT":
        truth, tensor = not truth, op.input(0)
        op = graph.producer(tensor)
    sign = _of_comparison(tensor, op) or _of_levels(graph, tensor) or Sign(tensor, None)
    return sign if truth else sign.negated()


def _of_levels(graph: Graph, tensor: Tensor) -> Sign | None:
    """The sign that is +1 where a boolean function of a quantized tensor is true."""
    steps = steps_of(graph, tensor)
    if steps.x is None or steps.x.dims != tensor.dims or numbers_of_grid(steps.x) is None:
        return None
    return _of_steps(graph, replace(steps, values=2 * steps.values - 1), assume_nonzero=False)


def _of_comparison(tensor: Tensor, op: Op | None) -> Sign | None:
    if op is not None and op.name in _COMPARISONS:
        left, right = op.input(0), op.input(1)
        for x, other, name in ((left, right, op.name), (right, left, _MIRRORED[op.name])):
            threshold = _threshold(x, other)
            if threshold is None or not np.all(np.isfinite(threshold)) or x.is_constant or x.dims != tensor.dims:
                continue
            if x.type == "FLOAT32":
                return Sign(x, name, threshold)
    return None


def _threshold(x: Tensor, constant: Tensor) -> float | Array | None:
    """The number, or the vector of channels, that x is compared with."""
    number = uniform(constant)
    return per_channel(constant, x.channels) if number is None else number


def _select(graph: Graph, op: Op) -> Sign | None:
    condition, if_true, if_false = op.input(0), op.input(1), op.input(2)
    values = (number_of(graph, if_true), number_of(graph, if_false))
    if values in ((1.0, -1.0), (-1.0, 1.0)):
        sign = _of_boolean(graph, condition)
        return sign if values[0] == 1.0 else sign.negated()
    return None


@dataclass(frozen=True)
class TwoValues:
    """`high` where a boolean source is true, or another one at least the threshold; else `low`. These in any order.

    Attributes:
        source: BOOL; FLOAT32, an unpacked sign (`is_sign`) or any other; or quantized.
        threshold: of a source that is no sign; of the grid of a quantized one.
        step: that of the coarsest grid to which the values are rounded, 0 for none.
        dims: those of the tensor that takes the values, which a boolean may be broadcast to.
    """

    source: Tensor
    high: float
    low: float
    dims: tuple[int, ...]
    step: float
    is_sign: bool = False
    threshold: float = 0.0


def find_two_values(graph: Graph, tensor: Tensor) -> TwoValues | None:
    """Which two numbers a float or quantized tensor takes, where a boolean or a sign decides.

    That is a boolean cast to a number, a select of two numbers or an unpacked sign, and what numbers and
    straight-through estimators make of one of these, rounded to a grid or not. Of a quantized tensor its source's
    levels may decide: there, numbers within a step of each other are one that is rounded in several ways.
    """
    if tensor.type == "BOOL":
        return None
    # What compares an unpacked sign may make several booleans of it.
    of_booleans, of_signs = steps_of(graph, tensor, of_booleans=True), steps_of(graph, tensor)
    found = _two_values(graph, tensor, of_booleans) or _two_values(graph, tensor, of_signs)
    return found or (_two_of_levels(tensor, of_signs) if is_quantized(tensor) else None)


def _two_values(graph: Graph, tensor: Tensor, steps: Steps) -> TwoValues | None:
    if steps.x is None or len(steps.edges) != 1 or not steps.is_known or not np.all(np.isfinite(steps.values)):
        return None
    is_sign = steps.x.type != "BOOL"
    if is_sign and (steps.x.dims != tensor.dims or bits_of(graph, steps.x) is None):
        return None
    if not is_sign and times_repeated(steps.x.dims, tensor.dims) is None:
        return None
    low, high = (float(value) for value in steps.values)
    return TwoValues(steps.x, high, low, tensor.dims, steps.step, is_sign)


def _two_of_levels(tensor: Tensor, steps: Steps) -> TwoValues | None:
    """The two numbers nearest to those of a function that jumps once, and changes by a step at most elsewhere."""
    if steps.x is None or steps.x.dims != tensor.dims or not len(steps.edges) or not steps.is_known:
        return None
    jump = int(np.argmax(np.abs(np.diff(steps.values))))
    sides = steps.values[: jump + 1], steps.values[jump + 1 :]
    low, high = ((side.min() + side.max()) / 2 for side in sides)
    if max(map(np.ptp, sides)) > 2 * steps.step or not abs(high - low) > 4 * steps.step:
        return None
    return TwoValues(steps.x, float(high), float(low), tensor.dims, steps.step, threshold=float(steps.edges[jump]))


@dataclass(frozen=True)
class TwoLevels:
    """`high` where x is not below the threshold, else `low`; x is float, or quantized and the threshold of its grid."""

    x: Tensor
    threshold: float
    high: float
    low: float


def find_two_levels(graph: Graph, tensor: Tensor) -> TwoLevels | None:
    """Where a tensor turns that takes two numbers, and no boolean or sign decides which."""
    steps = steps_of(graph, tensor)
    if steps.x is None or steps.x.type == "BOOL" or len(steps.edges) != 1 or not steps.is_known:
        return None
    low, high = (float(value) for value in steps.values)
    return TwoLevels(steps.x, float(steps.edges[0]), high, low)


def find_constant(graph: Graph, tensor: Tensor) -> float | None:
    """The one number that a tensor is, whatever the ops that it is computed by are given."""
    steps = steps_of(graph, tensor)
    return float(steps.values[0]) if steps.is_known and len(steps.values) == 1 else None
