"""Finds where a value was computed that a sign or quantizer compares with thresholds.

Clamps, saturating functions and scales may stand in between. After a clamp of x / 1e-8, all values are ±1, so their
distance from zero no longer shows if rounding decides the sign.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np

from litebnn.analysis.constants import evaluate
from litebnn.analysis.match import fused_activation
from litebnn.analysis.numbers.ranges import range_of
from litebnn.contract import ACTIVATION_RANGES
from litebnn.graph import Array, Graph, Op, Tensor, facts
from litebnn.rules.build.ops import copy_of

Thresholds: TypeAlias = tuple[float | Array, ...]

# Functions that saturate, each with its range and its inverse.
_SATURATING: dict[str, tuple[tuple[float, float], Callable[[Array], Array]]] = {
    "TANH": ((-1.0, 1.0), np.arctanh),
    "LOGISTIC": ((0.0, 1.0), lambda values: np.log(values / (1 - values))),
}
# The inverse of an op with a constant operand, for the thresholds of its other operand.
_SCALES: dict[str, Callable[[Array, Array], Array]] = {"MUL": np.divide, "DIV": np.multiply}
_SHIFTS: dict[str, Callable[[Array, Array], Array]] = {"ADD": np.subtract, "SUB": np.add}
_CLAMPS = ("MINIMUM", "MAXIMUM")
_KEEP_ZERO = ("ELU", "LEAKY_RELU", "PRELU")
_LEAST = float(np.finfo(np.float32).tiny)
# Numbers jump if such a step of x takes them half of the way from one end of a clamp to the other.
_JUMP = 1e-3


@dataclass(frozen=True)
class _Step:
    """The input of an op, and the thresholds of this input."""

    x: Tensor
    thresholds: Thresholds
    clamps: bool = True


def where_computed(graph: Graph, tensor: Tensor, thresholds: Thresholds) -> tuple[Tensor, Thresholds]:
    """Returns the tensor before all clamps and scales upstream of `tensor`, and its thresholds: the numbers that these
    ops map to `thresholds`.

    Shifts that differ between channels are passed only on the way to a clamp. With scales of channels before such a
    shift, the thresholds of some channels may be far from all values. If ops that only move elements stand between,
    copies of these ops are added to the graph.
    """
    found = step = _Step(tensor, _mapped(np.asarray, thresholds))
    is_shifted = False
    while (op := graph.producer(step.x)) is not None and (before := _before(graph, op, step.thresholds)) is not None:
        shifts = op.name in _SHIFTS and any(np.size(threshold) > 1 for threshold in before.thresholds)
        step, is_shifted = before, not before.clamps and (is_shifted or shifts)
        found = found if is_shifted else step
    return found.x, found.thresholds


def _before(graph: Graph, op: Op, thresholds: Thresholds) -> _Step | None:
    """Steps over an op that keeps the order of its input's values; None if it is another op, or never reaches a
    threshold."""
    activation = fused_activation(op)
    if activation is None or op.output.type != "FLOAT32" or not _within(ACTIVATION_RANGES[activation], thresholds):
        return None
    if facts(op).moves:
        return _before_moving(graph, op, thresholds)
    step = _before_operand(graph, op, thresholds)
    if step is None or step.x.dims != op.output.dims or not all(np.all(np.isfinite(t)) for t in step.thresholds):
        return None
    return replace(step, clamps=step.clamps or activation != 0)


def _before_moving(graph: Graph, op: Op, thresholds: Thresholds) -> _Step | None:
    """Steps over an op that moves or selects elements, if a clamp or scale is upstream of it. The tensor before this
    clamp is moved by a copy of the op.
    """
    x = op.input(0)
    if any(np.size(t) > 1 for t in thresholds):  # their axis might move
        return None
    source, before = where_computed(graph, x, thresholds)
    if source is x or any(np.size(t) > 1 for t in before):
        return None
    return _Step(copy_of(graph, op, source, "/unclamped"), before)


def _before_operand(graph: Graph, op: Op, thresholds: Thresholds) -> _Step | None:
    """Steps over an elementwise op that keeps the order of values, apart from its fused activation."""
    limits = facts(op).clamp_limits
    if op.name in _SATURATING:
        limits, inverse = _SATURATING[op.name]
        return _Step(op.input(0), _mapped(inverse, thresholds)) if _within(limits, thresholds) else None
    if limits is not None:
        return _Step(op.input(0), thresholds) if _within(limits, thresholds) else None
    if op.name in _KEEP_ZERO:
        return None if any(map(np.any, thresholds)) else _Step(op.input(0), thresholds, clamps=False)
    if op.name not in (*_CLAMPS, *_SCALES, *_SHIFTS):
        return None
    x, other = op.input(0), op.input(1)
    if op.name not in ("DIV", "SUB") and evaluate(graph, x) is not None:
        x, other = other, x
    number = evaluate(graph, other)
    if number is None:
        x, other = (x, other) if x.dims == op.output.dims else (other, x)
        is_scaled = op.name in _SCALES and other.dims != op.output.dims and not any(map(np.any, thresholds))
        return _Step(x, thresholds, clamps=False) if is_scaled else None
    if op.name in _CLAMPS:
        ends = (-np.inf, number) if op.name == "MINIMUM" else (number, np.inf)
        return _Step(x, thresholds) if _within(ends, thresholds) else None
    if op.name in _SCALES and not np.all(number > 0):
        return None
    undo, numbers = {**_SCALES, **_SHIFTS}[op.name], number.astype(np.float64)
    return _Step(x, _mapped(lambda threshold: undo(threshold, numbers), thresholds), clamps=False)


def _within(limits: tuple[float | Array, float | Array], thresholds: Thresholds) -> bool:
    """True if a clamp to the limits changes no value next to a threshold."""
    low, high = limits
    return all(bool(np.all((low < each) & (each < high))) for each in thresholds)


def _mapped(function: Callable[[Array], Array], thresholds: Thresholds) -> Thresholds:
    """Applies a function to each threshold. The least normal float counts as 0: x > 0 is x >= this number."""
    with np.errstate(all="ignore"):
        mapped = [np.asarray(function(np.asarray(each, np.float64))) for each in thresholds]
    mapped = [np.where(np.abs(each) <= _LEAST, 0.0, each) for each in mapped]
    return tuple(float(each.flat[0]) if np.all(each == each.flat[0]) else each for each in mapped)


def jump_of(graph: Graph, tensor: Tensor) -> tuple[Tensor, Thresholds] | None:
    """Returns the operand and the thresholds of numbers that jump from one end of a clamp to the other; None for other
    numbers. An example is clamp(x / 1e-8, -1, 1). Rounding decides such numbers as it decides signs.
    """
    low, high = range_of(graph, tensor)
    quarter = (high - low) / 4
    if not np.isfinite(quarter):
        return None
    x, thresholds = where_computed(graph, tensor, (low + quarter, high - quarter))
    if x is tensor or np.max(np.abs(thresholds[1] - thresholds[0])) > _JUMP:
        return None
    return x, thresholds
