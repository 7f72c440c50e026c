"""Finds the inputs at which rounded, monotone functions of one tensor change their values."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import TypeAlias

import numpy as np

from litebnn.analysis.affine import normal_level
from litebnn.analysis.constants import ELEMENTWISE
from litebnn.analysis.match import fused_activation, uniform
from litebnn.analysis.transfers import RELUS, TO_INTEGERS, Values
from litebnn.analysis.walks import MOST_OPS
from litebnn.contract import ACTIVATION_RANGES, Activation
from litebnn.graph import Array, Graph, Op, Question, Tensor

_MOST_LEVELS = 4
# Each iteration of the search evaluates a function at this many numbers at once. NumPy takes hardly more time for them
# than for one number.
_AT_ONCE = 257
_STEPPING = (*TO_INTEGERS, "SIGN")
_OF_ONE = (*_STEPPING, *RELUS, "EXP", "LOGISTIC", "NEG", "TANH")
_OF_TWO = ("ADD", "DIV", "MAXIMUM", "MINIMUM", "MUL", "SUB")
_WITH_A_NUMBER = ("DIV", "MUL")
_NEGATIVE_ZERO = -(1 << 31)


def _monotone(graph: Graph, tensor: Tensor) -> tuple[Tensor, bool, tuple[Op, ...]]:
    op = graph.producer(tensor)
    moving = () if op is None else _moving(op)
    parts = [] if op is None else [_monotone_in(graph, op.input(index)) for index in moving]
    falls = {falls != _reverses(op, i) for (_, falls, _), i in zip(parts, moving, strict=True) if op is not None}
    ops = tuple(dict.fromkeys(each for _, _, of_part in parts for each in of_part))
    if op is None or len({x for x, _, _ in parts}) != 1 or len(falls) != 1 or len(ops) >= MOST_OPS:
        return tensor, False, ()
    return parts[0][0], falls.pop(), (*ops, op)


# _monotone_in(graph, tensor) describes a tensor as a monotone function of a tensor x, which is as far upstream as
# possible. The result has three parts: x, a bool that is True if the function falls, and the ops that compute the
# tensor from x. If there is no such function, x is the tensor itself.
_monotone_in = Question(_monotone, lambda op: [op.input(index) for index in _moving(op)])


def _rounded(graph: Graph, tensor: Tensor) -> Values | None:
    x, _, ops = _monotone_in(graph, tensor)
    if not any(op.name in _STEPPING for op in ops) or x.type != "FLOAT32" or x.is_constant:
        return None
    found = _search(_described(x, ops))
    return None if found is None else Values(x, *found)


# rounded_values(graph, tensor) returns the few values of a tensor that is a rounded, monotone function of a float
# tensor; None for other tensors. Each op of such a function keeps or reverses the order of numbers, in the runtime's
# arithmetic too. If the function is equal at two numbers, it is equal between them, so bisection finds the numbers at
# which it changes.
rounded_values = Question(_rounded)


# A step is one op of a function of x: its name, operands and activation. An operand is a constant number as bytes, or
# an index: 0 stands for x, and n for the result of the n-th op. Bytes distinguish numbers, such as 0 and -0, that
# compare equal but compute differently.
_Step: TypeAlias = tuple[str, tuple[int | bytes, ...], Activation]


def _described(x: Tensor, ops: Sequence[Op]) -> tuple[_Step, ...]:
    places = {x: 0, **{op.output: place for place, op in enumerate(ops, 1)}}
    return tuple(
        (
            op.name,
            tuple(places[t] if t in places else np.float32(uniform(t)).tobytes() for t in op.inputs if t is not None),
            fused_activation(op) or Activation.NONE,
        )
        for op in ops
    )


# The results are cached, because many layers of a network round in the same way, and several rules need the result for
# each of them.
@functools.lru_cache(maxsize=1 << 10)
def _search(steps: tuple[_Step, ...]) -> tuple[Array, Array] | None:
    """Returns the numbers at which a function changes, and the function's values around them; None if there are too
    many.

    The function is monotone, so it is constant between two numbers with the same value. All intervals whose ends have
    different values are halved together, until the ends are neighbouring floats.
    """
    highest = int(np.array([np.finfo(np.float32).max], np.float32).view(np.int32)[0])
    ranks = np.linspace(-highest, highest, _AT_ONCE).astype(np.int64)
    values = _values(steps, ranks)
    first = values[:1]
    while True:
        changes = np.flatnonzero(values[1:] != values[:-1])
        if len(changes) > _MOST_LEVELS:
            return None
        intervals = list(zip(ranks[changes], ranks[changes + 1], strict=True))
        if all(end - begin == 1 for begin, end in intervals):
            break
        ranks = np.unique(np.concatenate([np.linspace(*ends, _AT_ONCE).astype(np.int64) for ends in intervals]))
        values = _values(steps, ranks)
    numbers = np.concatenate([first, values[changes + 1]])
    if not np.all(np.isfinite(numbers)):
        return None
    return normal_level(_of_rank(ranks[changes + 1]), up=True), numbers.astype(np.float64)


def _values(steps: tuple[_Step, ...], ranks: Array) -> Array:
    """Returns the function's values at the numbers of these ranks. The rank of a number is its position in the order
    of all float32.
    """
    results = [_of_rank(ranks)]
    with np.errstate(all="ignore"):
        for name, operands, activation in steps:
            inputs = (results[o] if isinstance(o, int) else np.frombuffer(o, np.float32) for o in operands)
            result = np.asarray(ELEMENTWISE[name](*inputs))
            if activation != Activation.NONE:
                result = np.clip(result, *ACTIVATION_RANGES[activation])
            results.append(result.astype(np.float32))
    return results[-1]


def _of_rank(ranks: Array) -> Array:
    """Returns the float32 numbers of these ranks in the order of all float32. Rank 0 is zero, rank 1 the next number
    above zero, and rank -1 the next one below.
    """
    return np.where(ranks >= 0, ranks, _NEGATIVE_ZERO - ranks).astype(np.int32).view(np.float32)


def _moving(op: Op) -> tuple[int, ...]:
    """Returns the indices of the inputs of which the op's output is a monotone function. All other inputs must be
    constant numbers."""
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


def _reverses(op: Op, index: int) -> bool:
    """True if the op's output falls when its input number `index` rises."""
    if op.name in _WITH_A_NUMBER:
        return (uniform(op.input(1 - index)) or 0.0) < 0
    return op.name == "NEG" or (op.name == "SUB" and index == 1)
