"""Finds the inputs at which rounded, monotone functions of one tensor change their values."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import TypeAlias

import numpy as np

from litebnn.analysis.affine import normal_level
from litebnn.analysis.constants import ELEMENTWISE
from litebnn.analysis.match import fused_activation, uniform
from litebnn.analysis.numbers.ranges import UNBOUNDED, range_of
from litebnn.analysis.quantization import Range
from litebnn.analysis.transfers import RELUS, SELECTS, TO_INTEGERS, Values
from litebnn.analysis.walks import MOST_OPS
from litebnn.contract import ACTIVATION_RANGES, Activation
from litebnn.graph import NUMPY_TYPES, Array, Graph, Op, Question, Tensor

# The largest numbers of changes of a function for its values to be found, and to be counted: 8 bits have 255.
_MOST_LEVELS, _MOST_COUNTED = 4, 255
# Each iteration of the search evaluates a function at this many numbers at once. NumPy takes hardly more time for them
# than for one number.
_AT_ONCE = 257
_OF_ONE = (*TO_INTEGERS, *RELUS, "CAST", "EXP", "LOGICAL_NOT", "LOGISTIC", "NEG", "SIGN", "TANH")
# The ops of two operands, each with the indices of the operands with which the output falls.
_OF_TWO: dict[str, tuple[int, ...]] = {
    **dict.fromkeys(("ADD", "DIV", "FLOOR_DIV", "MAXIMUM", "MINIMUM", "MUL"), ()),
    **dict.fromkeys(("GREATER", "GREATER_EQUAL", "SUB"), (1,)),
    **dict.fromkeys(("LESS", "LESS_EQUAL"), (0,)),
}
_WITH_A_NUMBER = ("DIV", "FLOOR_DIV", "MUL")
_INTEGERS = ("INT8", "UINT8", "INT16", "INT32", "INT64")
_NARROW = ("INT8", "UINT8", "INT16")
# Integers are computed as int64. Larger floats are undefined as integers, and count as this one.
_LARGEST = 1 << 53
_NEGATIVE_ZERO = -(1 << 31)


def _monotone(graph: Graph, tensor: Tensor) -> tuple[Tensor, bool, tuple[Op, ...]]:
    op = graph.producer(tensor)
    moving = () if op is None else _moving(op)
    parts = [] if op is None else [_monotone_in(graph, op.input(index)) for index in moving]
    falls = {
        falls != _reverses(op, index)
        for (_, falls, _), index in zip(parts, moving, strict=True)
        if op is not None and not (op.name in SELECTS and index == 0)
    }
    ops = tuple(dict.fromkeys(each for _, _, of_part in parts for each in of_part))
    if op is None or len({x for x, _, _ in parts}) != 1 or len(falls) > 1 or len(ops) >= MOST_OPS:
        return tensor, False, ()
    return parts[0][0], True in falls, (*ops, op)


# _monotone_in(graph, tensor) describes a tensor as a monotone function of a tensor x, which is as far upstream as
# possible. The result has three parts: x, a bool that is True if the function falls, and the ops that compute the
# tensor from x. If there is no such function, x is the tensor itself. Selects may make the function jump in either
# direction where their conditions change.
_monotone_in = Question(_monotone, lambda op: [op.input(index) for index in _moving(op)])


def _limits(graph: Graph, x: Tensor) -> Range:
    # The levels of a quantized tensor are steps of their own (`values.py`).
    return range_of(graph, x) if graph.producer(x, "DEQUANTIZE") is None else UNBOUNDED


def _rounded(graph: Graph, tensor: Tensor) -> Values | None:
    x, _, ops = _monotone_in(graph, tensor)
    if not any(_rounds(op) or op.name == "SIGN" for op in ops) or x.type != "FLOAT32" or x.is_constant:
        return None
    found = _search(_described(x, ops), *_limits(graph, x))
    return None if found is None else Values(x, *found)


# rounded_values(graph, tensor) returns the few values of a tensor that is a rounded, monotone function of a float
# tensor; None for other tensors. Each op of such a function keeps or reverses the order of numbers, in the runtime's
# arithmetic too. If the function is equal at two numbers, it is equal between them, so bisection finds the numbers at
# which it changes.
rounded_values = Question(_rounded)


def _is_rounded(graph: Graph, tensor: Tensor) -> bool:
    op = graph.producer(tensor)
    if op is None or _rounds(op):
        return op is not None
    read = [index for index in _moving(op) if index or op.name not in SELECTS]
    return bool(read) and all(is_rounded(graph, op.input(index)) for index in read)


# is_rounded(graph, tensor) is True if a tensor is computed only from rounded numbers, perhaps by clamps and lines.
is_rounded = Question(_is_rounded, lambda op: [op.input(index) for index in _moving(op)])


def count_of_levels(graph: Graph, tensor: Tensor) -> int | None:
    """Returns how many values a tensor takes that is computed from rounded numbers; None if there are too many."""
    x, _, ops = _monotone_in(graph, tensor)
    if not any(map(_rounds, ops)) or x.type != "FLOAT32" or x.is_constant:
        return None
    found = _search(_described(x, ops), *_limits(graph, x), most=_MOST_COUNTED)
    return None if found is None else np.unique(found[1]).size


# A step is one op of a function of x: its name, operands, activation, and the type of its output. An operand is an
# index, or the type and bytes of a constant number. Index 0 stands for x, and n for the result of the n-th op. Bytes
# distinguish numbers, such as 0 and -0, that compare equal but compute differently.
_Operand: TypeAlias = "int | tuple[str, bytes]"
_Step: TypeAlias = tuple[str, tuple[_Operand, ...], Activation, str]


def _described(x: Tensor, ops: Sequence[Op]) -> tuple[_Step, ...]:
    places = {x: 0, **{op.output: place for place, op in enumerate(ops, 1)}}

    def operand(tensor: Tensor) -> _Operand:
        return places[tensor] if tensor in places else _number(tensor)

    return tuple(
        (
            op.name,
            tuple(operand(tensor) for tensor in op.inputs if tensor is not None),
            fused_activation(op) or Activation.NONE,
            op.output.type,
        )
        for op in ops
    )


def _number(tensor: Tensor) -> tuple[str, bytes]:
    number = np.asarray(uniform(tensor), np.int64 if tensor.type in _INTEGERS else NUMPY_TYPES[tensor.type])
    return number.dtype.str, number.tobytes()


# The results are cached, because many layers of a network round in the same way, and several rules need the result for
# each of them.
@functools.lru_cache(maxsize=1 << 10)
def _search(steps: tuple[_Step, ...], low: float, high: float, most: int = _MOST_LEVELS) -> tuple[Array, Array] | None:
    """Returns the numbers in [low, high] at which a function changes, and the function's values around them; None if
    there are more than `most`."""
    largest = np.finfo(np.float32).max
    ends = _rank_of(np.clip(np.array([low, high], np.float32), -largest, largest))
    breaks = np.zeros(0, np.int64)
    for name, (first, *_), _, _ in steps:
        if name in SELECTS and isinstance(first, int):
            found = _changes(steps[:first], ends, breaks, most)
            if found is None:
                return None
            breaks = np.concatenate([breaks, found[0]])
    found = _changes(steps, ends, breaks, most)
    if found is None or not np.all(np.isfinite(found[1])):
        return None
    return normal_level(_of_rank(found[0]), up=True), found[1].astype(np.float64)


def _changes(steps: tuple[_Step, ...], ends: Array, breaks: Array, most: int) -> tuple[Array, Array] | None:
    """Returns the ranks at which a function changes, and the function's values around them; None if there are too many.

    Monotone between two `breaks`, so constant between two numbers with the same value. All
    intervals whose ends have different values are halved together, until the ends are neighbouring floats.
    """
    begins, ends = ends[:1], ends[1:]
    while True:
        inside = np.linspace(begins, ends, _AT_ONCE).astype(np.int64).reshape(-1)
        ranks = np.unique(np.concatenate([inside, breaks, breaks - 1]))
        values = _values(steps, ranks)
        changes = np.zeros(0, np.int64) if values is None else np.flatnonzero(values[1:] != values[:-1])
        if values is None or len(changes) > most:
            return None
        begins, ends = ranks[changes], ranks[changes + 1]
        if np.all(ends - begins == 1):
            return ends, np.concatenate([values[:1], values[changes + 1]])


def _values(steps: tuple[_Step, ...], ranks: Array) -> Array | None:
    """Returns the function's values at the numbers of these ranks; None if a number is too large for the integer to
    which it is cast. The rank of a number is its position in the order of all float32.
    """
    results = [_of_rank(ranks)]
    with np.errstate(all="ignore"):
        for name, operands, activation, kind in steps:
            inputs = [results[o] if isinstance(o, int) else np.frombuffer(o[1], o[0]) for o in operands]
            result = inputs[0] if name == "CAST" else np.asarray(ELEMENTWISE[name](*inputs))
            if activation != Activation.NONE:
                result = np.clip(result, *ACTIVATION_RANGES[activation])
            if kind in _INTEGERS and result.dtype.kind == "f":
                result = np.trunc(np.clip(np.nan_to_num(result), -_LARGEST, _LARGEST))
            if kind in _NARROW and np.any(result != result.astype(NUMPY_TYPES[kind])):
                return None
            results.append(result.astype(np.int64 if kind in _INTEGERS else NUMPY_TYPES[kind]))
    return results[-1]


def _of_rank(ranks: Array) -> Array:
    """Returns the float32 numbers of these ranks in the order of all float32. Rank 0 is zero, rank 1 the next number
    above zero, and rank -1 the next one below.
    """
    return np.where(ranks >= 0, ranks, _NEGATIVE_ZERO - ranks).astype(np.int32).view(np.float32)


def _rank_of(numbers: Array) -> Array:
    """Returns the ranks of float32 numbers in the order of all float32."""
    bits = numbers.view(np.int32).astype(np.int64)
    ranks: Array = np.where(bits >= 0, bits, _NEGATIVE_ZERO - bits)
    return ranks


def _rounds(op: Op) -> bool:
    is_cast = op.name == "CAST" and op.input(0).type == "FLOAT32" and op.output.type in _INTEGERS
    return is_cast or op.name in (*TO_INTEGERS, "FLOOR_DIV")


def _moving(op: Op) -> tuple[int, ...]:
    """Returns the indices of the inputs of which the op's output is a monotone function. All other inputs must be
    constant numbers."""
    if len(op.outputs) != 1 or fused_activation(op) is None or not op.inputs or None in op.inputs:
        return ()
    if not all(tensor is not None and _is_plain(tensor) for tensor in (*op.inputs, op.output)):
        return ()
    if op.name in _OF_ONE:
        return () if op.name == "CAST" and op.output.type == "BOOL" else (0,)
    if op.name not in _OF_TWO and op.name not in SELECTS:
        return ()
    moving = tuple(index for index in range(len(op.inputs)) if uniform(op.input(index)) is None)
    if len(moving) > 1 and (op.name in _WITH_A_NUMBER or any(op.input(i).dims != op.output.dims for i in moving)):
        return ()
    fixed = (op.name in ("DIV", "FLOOR_DIV") and 1 in moving) or (op.name in SELECTS and 0 not in moving)
    return () if fixed else moving


def _is_plain(tensor: Tensor) -> bool:
    return tensor.quantization is None and tensor.type in ("FLOAT32", "BOOL", *_INTEGERS)


def _reverses(op: Op, index: int) -> bool:
    """True if the op's output falls when its input number `index` rises."""
    if op.name in _WITH_A_NUMBER:
        return (uniform(op.input(1 - index)) or 0.0) < 0
    return op.name in ("NEG", "LOGICAL_NOT") or index in _OF_TWO.get(op.name, ())
