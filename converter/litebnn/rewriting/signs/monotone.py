"""Functions of one tensor that only rise, or only fall, and the numbers at which their rounded values change."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from litebnn.contract import ACTIVATION_RANGES, Activation
from litebnn.graph import Array, Graph, Op, Tensor
from litebnn.rewriting.affine import normal_level
from litebnn.rewriting.constants import ELEMENTWISE
from litebnn.rewriting.match import fused_activation, uniform

_DEEPEST = 16
_MOST_LEVELS = 4
_OF_ONE = (
    *("CEIL", "EXP", "FLOOR", "LOGISTIC", "NEG", "ROUND", "SIGN", "TANH"),
    *("RELU", "RELU6", "RELU_0_TO_1", "RELU_N1_TO_1"),
)
_WITH_A_NUMBER = ("ADD", "DIV", "MAXIMUM", "MINIMUM", "MUL", "SUB")
_NEGATIVE_ZERO = -(1 << 31)


def edges_of_levels(graph: Graph, tensor: Tensor) -> tuple[Tensor, Array, Array] | None:
    """Takes a tensor apart that is a rounded function of another, where that never turns and takes few values.

    Each op of such a function keeps the order of numbers, or turns it around, in the runtime's arithmetic too. So what
    is the same at two numbers is the same between them, and bisection finds where it changes.

    Returns:
        The other tensor, float32 [k] numbers and float64 [k + 1] values, as of `Steps`; None for other tensors.
    """
    ops: list[Op] = []
    while (op := graph.producer(tensor)) is not None and len(ops) < _DEEPEST and _position(op) is not None:
        ops.append(op)
        tensor = op.input(_position(op) or 0)
    if not ops or tensor.type != "FLOAT32" or tensor.is_constant:
        return None

    def function(bits: int) -> float:
        values = np.array([bits], np.int32).view(np.float32)
        with np.errstate(all="ignore"):
            for op in reversed(ops):
                values = _applied(op, values)
        return float(values[0])

    highest = int(np.array([np.finfo(np.float32).max], np.float32).view(np.int32)[0])
    edges: list[int] = []
    lowest = -highest
    values, last = [function(_bits(lowest))], function(_bits(highest))
    while values[-1] != last:
        if len(edges) == _MOST_LEVELS:
            return None
        lowest = _first_other(lambda rank: function(_bits(rank)), lowest, highest, values[-1])
        edges.append(_bits(lowest))
        values.append(function(_bits(lowest)))
    if not np.all(np.isfinite(values)):
        return None
    levels = normal_level(np.array(edges, np.int32).view(np.float32), up=True)
    return tensor, levels, np.array(values, np.float64)


def _bits(rank: int) -> int:
    """The bits of the float32 of that rank: 0 is zero, 1 the least above, -1 the greatest below."""
    return rank if rank >= 0 else _NEGATIVE_ZERO - rank


def _first_other(function: Callable[[int], float], low: int, high: int, value: float) -> int:
    """The first rank above `low` where the function is no longer `value`, as it is not at `high`."""
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if function(middle) == value else (low, middle)
    return high


def _position(op: Op) -> int | None:
    """Which input the op's output rises or falls with, where all else is numbers."""
    if op.output.type != "FLOAT32" or fused_activation(op) is None or not op.inputs or None in op.inputs:
        return None
    if op.name in _OF_ONE:
        return 0
    if op.name not in _WITH_A_NUMBER or op.inputs[0] is op.inputs[1]:
        return None
    if uniform(op.input(1)) is not None:
        return 0
    return 1 if uniform(op.input(0)) is not None and op.name != "DIV" else None


def _applied(op: Op, values: Array) -> Array:
    operands = [values] * len(op.inputs)
    if len(operands) == 2:
        position = _position(op)
        number = uniform(op.input(1 if position == 0 else 0))
        operands = [values if i == position else np.asarray([number], np.float32) for i in range(2)]
    limits = ACTIVATION_RANGES[fused_activation(op) or Activation.NONE]
    result: Array = np.clip(ELEMENTWISE[op.name](*operands), *limits).astype(np.float32)
    return result
