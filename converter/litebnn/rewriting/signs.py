"""Finding signs in the forms that exporters leave them in.

The forms: sign(sign(x) + c) with 0 < |c| < 1; select on a comparison or any other boolean; select(x == 0, 1, sign(x));
a boolean cast to a number and scaled to ±1. Functions of other values (ternary, several bits) are none. Between the ops
of a form, values may be rounded to a grid, and of what they are then no more is said than what the sign needs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from litebnn.contract import LCE_DEQUANTIZE
from litebnn.graph import Array, Graph, Op, Tensor
from litebnn.rewriting.affine import per_channel
from litebnn.rewriting.int8 import is_int8, lowest_value, on_grid, tells_zero_apart
from litebnn.rewriting.match import fused_activation, uniform

_COMPARISONS = ("GREATER_EQUAL", "GREATER", "LESS_EQUAL", "LESS")
# A comparison is the mirrored one with its sides exchanged, and the opposite of the negated one.
_MIRRORED = {"GREATER_EQUAL": "LESS_EQUAL", "GREATER": "LESS", "LESS_EQUAL": "GREATER_EQUAL", "LESS": "GREATER"}
_NEGATED = {"GREATER_EQUAL": "LESS", "GREATER": "LESS_EQUAL", "LESS_EQUAL": "GREATER", "LESS": "GREATER_EQUAL"}


@dataclass(frozen=True)
class Sign:
    """+1 where `comparison(x, threshold)` holds or, without a comparison, where the boolean x is `truth`; else -1.

    The threshold is one number, or float32 [channels]. `condition` is the result of an int8 comparison, the opposite of
    which LceQuantize cannot read from x.
    """

    x: Tensor
    comparison: str | None
    threshold: float | Array = 0.0
    truth: bool = True
    condition: Tensor | None = None

    def negated(self) -> Sign:
        if self.condition is not None:
            return Sign(self.condition, None, truth=False)
        comparison = None if self.comparison is None else _NEGATED[self.comparison]
        return Sign(self.x, comparison, self.threshold, not self.truth)


def find_sign(graph: Graph, tensor: Tensor) -> Sign | None:
    """What `tensor` is the sign of, where it is one."""
    op = graph.producer(tensor)
    return None if op is None or op.name not in _MATCHERS else _MATCHERS[op.name](graph, op)


def _of_boolean(graph: Graph, tensor: Tensor) -> Sign:
    """The sign that is +1 where the boolean tensor is true."""
    op = graph.producer(tensor)
    truth = True
    while op is not None and op.name == "LOGICAL_NOT":
        truth, tensor = not truth, op.input(0)
        op = graph.producer(tensor)
    sign = _of_comparison(tensor, op) or Sign(tensor, None)
    return sign if truth else sign.negated()


def _of_comparison(tensor: Tensor, op: Op | None) -> Sign | None:
    """An int8 x is compared with its zero point only, for that is what LceQuantize does."""
    if op is not None and op.name in _COMPARISONS:
        left, right = op.input(0), op.input(1)
        for x, other, name in ((left, right, op.name), (right, left, _MIRRORED[op.name])):
            threshold = _threshold(x, other)
            if threshold is None or not np.all(np.isfinite(threshold)) or x.is_constant or x.dims != tensor.dims:
                continue
            told = is_int8(x) and tells_zero_apart(x) and name == "GREATER_EQUAL" and np.all(threshold == 0)
            if x.type == "FLOAT32" or told:
                return Sign(x, name, threshold, condition=None if x.type == "FLOAT32" else tensor)
    return None


def _threshold(x: Tensor, constant: Tensor) -> float | Array | None:
    """The number, or the vector of channels, that x is compared with."""
    number = uniform(constant)
    return per_channel(constant, x.channels) if number is None else number


def _select(graph: Graph, op: Op) -> Sign | None:
    condition, if_true, if_false = op.input(0), op.input(1), op.input(2)
    values = (uniform(if_true), uniform(if_false))
    if values in ((1.0, -1.0), (-1.0, 1.0)):
        sign = _of_boolean(graph, condition)
        return sign if values[0] == 1.0 else sign.negated()
    # select(x == 0, ±1, sign(x))
    equal, inner = graph.producer(condition), graph.producer(if_false)
    if equal is None or inner is None or equal.name != "EQUAL" or inner.name != "SIGN" or abs(values[0] or 0.0) != 1.0:
        return None
    x = inner.input(0)
    compared = [t for t in (equal.input(0), equal.input(1)) if uniform(t) != 0.0]
    if len(compared) != 1 or compared[0] not in (x, inner.output) or x.type != "FLOAT32":
        return None
    return Sign(x, "GREATER_EQUAL" if values[0] == 1.0 else "GREATER", 0.0)


def _sign_of_shifted_sign(graph: Graph, op: Op) -> Sign | None:
    source, steps = _arithmetic(graph, op.input(0))
    inner = graph.producer(source)
    if inner is None or inner.name != "SIGN" or inner.input(0).type != "FLOAT32":
        return None
    x = inner.input(0)
    below, at, above = np.sign(steps(np.array([-1.0, 0.0, 1.0])))
    if lowest_value(graph, x) >= 0:
        below = -above
    if at == 0 or above == 0 or below != -above:
        return None
    if above > 0:
        return Sign(x, "GREATER_EQUAL" if at > 0 else "GREATER", 0.0)
    return Sign(x, "LESS_EQUAL" if at > 0 else "LESS", 0.0)


def _scaled_boolean(graph: Graph, op: Op) -> Sign | None:
    values = find_two_values(graph, op.output)
    if values is None or values.source.type != "BOOL" or (values.high, values.low) not in ((1.0, -1.0), (-1.0, 1.0)):
        return None
    sign = _of_boolean(graph, values.source)
    return sign if values.high == 1.0 else sign.negated()


_MATCHERS = {
    "SELECT": _select,
    "SELECT_V2": _select,
    "SIGN": _sign_of_shifted_sign,
    "ADD": _scaled_boolean,
    "SUB": _scaled_boolean,
    "MUL": _scaled_boolean,
}


@dataclass(frozen=True)
class TwoValues:
    """`high` where the source is true (BOOL) or +1 (FLOAT32), `low` where it is false or -1; numbers in any order."""

    source: Tensor
    high: float
    low: float


def find_two_values(graph: Graph, tensor: Tensor) -> TwoValues | None:
    """Which two numbers a float or quantized tensor takes, where a boolean or a sign decides.

    That is a boolean cast to a number, a select of two numbers or an unpacked sign, and MUL, DIV, ADD and SUB of one of
    these by numbers, rounded to a grid or not.
    """
    source, steps = _arithmetic(graph, tensor)
    op = graph.producer(source)
    values = None if op is None else _two_values_of(op)
    if values is None:
        return None
    high, low = (float(value) for value in steps(np.array([values.high, values.low])))
    return TwoValues(values.source, high, low) if np.all(np.isfinite([high, low])) else None


_STEPS: dict[str, Callable[[Any, Any], Any]] = {"MUL": np.multiply, "DIV": np.divide, "ADD": np.add, "SUB": np.subtract}
_MOST_STEPS = 8


def _arithmetic(graph: Graph, tensor: Tensor) -> tuple[Tensor, Callable[[Array], Array]]:
    """What `tensor` is computed from by numbers alone, and the function that the ops on the way are."""
    steps: list[tuple[Op, float, bool]] = []
    while (op := graph.producer(tensor)) is not None and len(steps) < _MOST_STEPS:
        if op.name in ("QUANTIZE", "DEQUANTIZE"):
            amount, constant_first = 0.0, False
        elif op.name in _STEPS and fused_activation(op) == 0:
            right = uniform(op.input(1))
            constant_first = right is None
            left_or_right = uniform(op.input(0)) if right is None else right
            if left_or_right is None:
                break
            amount = left_or_right
        else:
            break
        if on_grid(np.zeros(1), op.output) is None:
            break
        steps.append((op, amount, constant_first))
        tensor = op.input(1 if constant_first else 0)

    def computed(values: Array) -> Array:
        for op, amount, constant_first in reversed(steps):
            if op.name in _STEPS:
                step = _STEPS[op.name]
                with np.errstate(divide="ignore"):
                    values = step(amount, values) if constant_first else step(values, amount)
            rounded = on_grid(values, op.output)
            assert rounded is not None
            values = rounded
        return values

    return tensor, computed


def _two_values_of(op: Op) -> TwoValues | None:
    """The two values of an op that is none of the steps."""
    if not op.inputs or op.inputs[0] is None:
        return None
    source = op.input(0)
    if op.name == "CAST" and source.type == "BOOL" and op.output.type == "FLOAT32":
        return TwoValues(source, 1.0, 0.0)
    if op.name == LCE_DEQUANTIZE and op.output.type == "FLOAT32":
        return TwoValues(op.output, 1.0, -1.0)
    if op.name in ("SELECT", "SELECT_V2") and source.dims == op.output.dims:
        high, low = uniform(op.input(1)), uniform(op.input(2))
        return None if high is None or low is None else TwoValues(source, high, low)
    return None
