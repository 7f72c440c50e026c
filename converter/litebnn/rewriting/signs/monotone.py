"""Functions of one tensor that only rise, or only fall, and the numbers at which their rounded values change."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from litebnn.contract import ACTIVATION_RANGES, Activation
from litebnn.graph import Array, Graph, Op, Tensor
from litebnn.rewriting.affine import normal_level
from litebnn.rewriting.constants import ELEMENTWISE
from litebnn.rewriting.match import fused_activation, uniform

_DEEPEST = 16
_MOST_LEVELS = 4
# So many numbers are looked at in a step of the search, for NumPy takes hardly longer for them than for one.
_AT_ONCE = 257
_OF_ONE = (
    *("CEIL", "EXP", "FLOOR", "LOGISTIC", "NEG", "ROUND", "SIGN", "TANH"),
    *("RELU", "RELU6", "RELU_0_TO_1", "RELU_N1_TO_1"),
)
_OF_TWO = ("ADD", "DIV", "MAXIMUM", "MINIMUM", "MUL", "SUB")
_WITH_A_NUMBER = ("DIV", "MUL")
_STEPPING = ("CEIL", "FLOOR", "ROUND", "SIGN")
_NEGATIVE_ZERO = -(1 << 31)


def edges_of_levels(graph: Graph, tensor: Tensor) -> tuple[Tensor, Array, Array] | None:
    """Takes a tensor apart that is a rounded function of another, where that never turns and takes few values.

    Each op of such a function keeps the order of numbers, or turns it around, in the runtime's arithmetic too. So what
    is the same at two numbers is the same between them, and bisection finds where it changes.

    Returns:
        The other tensor, float32 [k] numbers and float64 [k + 1] values, as of `Steps`; None for other tensors.
    """
    function_of_x = _function(graph, tensor, {}, 0)
    x, ops = function_of_x.x, function_of_x.ops
    if not any(op.name in _STEPPING for op in ops) or x.type != "FLOAT32" or x.is_constant:
        return None

    def function(ranks: Array) -> Array:
        values = {x: _of_rank(ranks)}
        with np.errstate(all="ignore"):
            for op in ops:
                values[op.output] = _applied(op, values)
        return values[tensor]

    highest = int(np.array([np.finfo(np.float32).max], np.float32).view(np.int32)[0])
    edges: list[int] = []
    first, last = function(np.array([-highest, highest])).tolist()
    values = [first]
    while values[-1] != last:
        if len(edges) == _MOST_LEVELS:
            return None
        edges.append(_first_other(function, edges[-1] if edges else -highest, highest, values[-1]))
        values.append(float(function(np.array(edges[-1:]))[0]))
    if not np.all(np.isfinite(values)):
        return None
    return x, normal_level(_of_rank(np.array(edges, np.int64)), up=True), np.array(values, np.float64)


def _of_rank(ranks: Array) -> Array:
    """The float32 numbers of ranks: 0 is zero, 1 the least above, -1 the greatest below."""
    return np.where(ranks >= 0, ranks, _NEGATIVE_ZERO - ranks).astype(np.int32).view(np.float32)


def _first_other(function: Callable[[Array], Array], low: int, high: int, value: float) -> int:
    """The first rank above `low` where the function is no longer `value`, as it is not at `high`."""
    while high - low > 1:
        ranks = np.unique(np.linspace(low, high, _AT_ONCE).astype(np.int64))
        other = max(int(np.argmax(function(ranks) != value)), 1)
        low, high = int(ranks[other - 1]), int(ranks[other])
    return high


@dataclass(frozen=True)
class _Function:
    """Ops, in order of execution, that a tensor is computed by from x, with which it rises, or falls."""

    x: Tensor
    falls: bool = False
    ops: tuple[Op, ...] = ()


def _function(graph: Graph, tensor: Tensor, known: dict[Tensor, _Function], depth: int) -> _Function:
    """The tensor as a function of the farthest one that it only rises or only falls with; of itself at worst."""
    if tensor not in known:
        op = graph.producer(tensor)
        moving = () if op is None or depth == _DEEPEST else _moving(op)
        known[tensor] = _Function(tensor)
        if op is not None and moving:
            parts = [_function(graph, op.input(index), known, depth + 1) for index in moving]
            turned = [part.falls != _turns(op, index) for part, index in zip(parts, moving, strict=True)]
            if len({part.x for part in parts}) == len(set(turned)) == 1:
                ops = dict.fromkeys(each for part in parts for each in part.ops)
                known[tensor] = _Function(parts[0].x, turned[0], (*ops, op))
    return known[tensor]


def _moving(op: Op) -> tuple[int, ...]:
    """The inputs that the op's output rises or falls with, where all else is numbers."""
    if op.output.type != "FLOAT32" or fused_activation(op) is None or not op.inputs or None in op.inputs:
        return ()
    if op.name in _OF_ONE:
        return (0,)
    if op.name not in _OF_TWO:
        return ()
    moving = tuple(index for index in range(2) if uniform(op.input(index)) is None)
    if len(moving) == 2:
        alike = op.input(0).dims == op.input(1).dims == op.output.dims
        return moving if alike and op.name not in _WITH_A_NUMBER else ()
    return () if op.name == "DIV" and moving == (1,) else moving


def _turns(op: Op, index: int) -> bool:
    """Whether the op's output falls where this input rises."""
    if op.name in _WITH_A_NUMBER:
        return (uniform(op.input(1 - index)) or 0.0) < 0
    return op.name == "NEG" or (op.name == "SUB" and index == 1)


def _applied(op: Op, known: Mapping[Tensor, Array]) -> Array:
    inputs = [tensor for tensor in op.inputs if tensor is not None]
    operands = [known[t] if t in known else np.asarray([uniform(t)], np.float32) for t in inputs]
    limits = ACTIVATION_RANGES[fused_activation(op) or Activation.NONE]
    result: Array = np.clip(ELEMENTWISE[op.name](*operands), *limits).astype(np.float32)
    return result
