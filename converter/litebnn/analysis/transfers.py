"""Represents the values of a tensor as a step function of another tensor. A table has a function for each kind of op.
This function computes the step function of the op's output from those of its inputs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeAlias

import numpy as np

from litebnn.analysis.affine import next_level
from litebnn.analysis.constants import ELEMENTWISE
from litebnn.analysis.quantization import ROUNDING, as_compared, numbers_of_grid
from litebnn.graph import NUMPY_TYPES, Array, Op, Tensor

_COMPARISONS = ("EQUAL", "NOT_EQUAL", "GREATER_EQUAL", "GREATER", "LESS_EQUAL", "LESS")
SELECTS = ("SELECT", "SELECT_V2")
_TRUE_OF_ITSELF = ("EQUAL", "GREATER_EQUAL", "LESS_EQUAL")
TO_INTEGERS = ("ROUND", "FLOOR", "CEIL")
RELUS = ("RELU", "RELU6", "RELU_0_TO_1", "RELU_N1_TO_1")
CLAMPS = (*RELUS, "MINIMUM", "MAXIMUM")


@dataclass(frozen=True)
class Values:
    """The values of a tensor as a step function of another tensor, plus a sum of tensors that are multiplied by
    factors. The step function is `values[0]` below `edges[0]`, and `values[i + 1]` from `edges[i]` on.
    """

    # The field `x` is the tensor on which the values depend: FLOAT32, quantized, or BOOL, read as 0 and 1. The edges
    # are the numbers of `x` at which the values change. If `x` is quantized, it can represent its edges exactly. For a
    # function without edges, `x` is None.
    x: Tensor | None
    edges: Array  # float32 [k], ascending
    values: Array  # float64 [k + 1]
    # The tensors that are added to the step function, and the factors by which each tensor is multiplied. The factors
    # are float64 [k + 1], one for each element of `values`. A factor applies where the step function has this value.
    linear_terms: Mapping[Tensor, Array] = field(default_factory=dict)
    # The coarsest quantization scale to which the values were rounded; 0 without rounding.
    step: float = 0.0

    @property
    def is_known(self) -> bool:
        return not self.linear_terms

    @property
    def constant(self) -> float | None:
        """If the tensor has the same value for all inputs of the model, returns this value; otherwise None."""
        return float(self.values[0]) if self.is_known and len(self.values) == 1 else None

    @property
    def falls(self) -> bool:
        """True if the last value of the step function is below its first value."""
        return bool(self.values[-1] < self.values[0])

    def simplified(self) -> Values:
        """Returns the same function without edges at which it does not change."""
        rows = (self.values, *self.linear_terms.values())
        kept = np.any([np.diff(row) != 0 for row in rows], axis=0)
        return self._at(self.x, self.edges[kept], np.concatenate([[True], kept]))

    def between(self, first: int, last: int) -> Values:
        """Returns the function of an x that reaches the edges before `first` always, and those from `last` on never."""
        return self._at(self.x, self.edges[first:last], np.arange(first, last + 1))

    def without(self, place: int) -> Values:
        """Returns the function of an x that never gives the value number `place`, which the next value replaces."""
        return self._at(self.x, np.delete(self.edges, place), np.delete(np.arange(len(self.values)), place))

    def with_edges(self, x: Tensor | None, more: Array) -> Values:
        if not len(more):
            return replace(self, x=x)
        edges = np.unique(np.concatenate([self.edges, more])).astype(np.float32)
        return self._at(x, edges, np.searchsorted(self.edges, np.concatenate([[-np.inf], edges]), side="right"))

    def of_magnitude(self, x: Tensor) -> Values:
        """Returns the function f(|x|) as a function of x, where f is this function."""
        edges = self.edges[self.edges > 0]
        places = len(self.edges) - len(edges) + np.abs(np.arange(-len(edges), len(edges) + 1))
        return self._at(x, np.concatenate([next_level(-edges[::-1], up=True), edges]), places)

    def _at(self, x: Tensor | None, edges: Array, places: Array) -> Values:
        terms = {tensor: factors[places] for tensor, factors in self.linear_terms.items()}
        return Values(x, edges, self.values[places], terms, self.step)


def known_number(value: float, step: float = 0.0) -> Values:
    return Values(None, np.zeros(0, np.float32), np.array([value], np.float64), step=step)


def unknown(tensor: Tensor) -> Values:
    if tensor.type == "BOOL":
        return Values(tensor, np.array([0.5], np.float32), np.array([0.0, 1.0]))
    return Values(None, np.zeros(0, np.float32), np.zeros(1), {tensor: np.ones(1)})


def _sum(op: Op, parts: list[Values]) -> Values:
    left, right = parts
    factor = -1.0 if op.name == "SUB" else 1.0
    terms: dict[Tensor, Array] = dict(left.linear_terms)
    for tensor, factors in right.linear_terms.items():
        terms[tensor] = terms.pop(tensor, 0.0) + factor * factors
    return _with_terms(left, left.values + factor * right.values, terms)


def _with_terms(part: Values, values: Array, terms: Mapping[Tensor, Array]) -> Values:
    """Makes a step function with the edges of the function `part`, and with the given values and linear terms. A linear
    term is a tensor that is added to the values, multiplied by a factor for each value. Terms whose factors are all 0
    are left out.
    """
    return Values(part.x, part.edges, values, {tensor: factors for tensor, factors in terms.items() if np.any(factors)})


def _scaled(part: Values, factors: Array) -> Values:
    return _with_terms(
        part, part.values * factors, {tensor: own * factors for tensor, own in part.linear_terms.items()}
    )


def _product(op: Op, parts: list[Values]) -> Values | None:
    left, right = parts if parts[1].is_known else reversed(parts)
    return _scaled(left, right.values) if right.is_known and np.any(right.values) else None


def _quotient(op: Op, parts: list[Values]) -> Values | None:
    left, right = parts
    if right.is_known and np.all(right.values != 0) and left.linear_terms:
        return _scaled(left, 1 / right.values)
    return elementwise(op, parts)


def _picked(op: Op, parts: list[Values]) -> Values | None:
    condition, if_true, if_false = parts
    if not condition.is_known or condition.x is None:
        return None
    holds = condition.values != 0
    terms = {
        tensor: np.where(holds, if_true.linear_terms.get(tensor, 0.0), if_false.linear_terms.get(tensor, 0.0))
        for tensor in dict.fromkeys((*if_true.linear_terms, *if_false.linear_terms))
    }
    return _with_terms(condition, np.where(holds, if_true.values, if_false.values), terms)


def _cast(op: Op, parts: list[Values]) -> Values | None:
    dtype, part = NUMPY_TYPES.get(op.output.type), parts[0]
    # A CAST of a quantized tensor reads its integers, and not the values for which they stand.
    if dtype is None or op.input(0).quantization is not None or not part.is_known:
        return None
    if not np.all(np.isfinite(part.values)):
        return None
    return replace(part, values=part.values.astype(dtype).astype(np.float64))


def _magnitude(op: Op, parts: list[Values]) -> Values | None:
    """Returns |a · x + b| as a function with an edge where a · x + b is zero."""
    return _by_sign(parts[0], -1.0) if _is_line(parts[0]) else elementwise(op, parts)


def rectified(op: Op, parts: list[Values]) -> Values | None:
    """Returns the RELU of a · x + b as a function with an edge where a · x + b is zero."""
    return _by_sign(parts[0], 0.0) if _is_line(parts[0]) else elementwise(op, parts)


def _is_line(part: Values) -> bool:
    """True if a function is a · x + b for a float x, with an a and a b of its own for each step."""
    [x] = part.linear_terms if len(part.linear_terms) == 1 else [None]
    return x is not None and x.type == "FLOAT32" and not x.is_constant and part.x in (None, x)


def _by_sign(part: Values, below: float) -> Values | None:
    """Returns a · x + b with an edge where it is zero, multiplied by `below` where it is negative."""
    [(x, factors)] = part.linear_terms.items()
    zeros = (-part.values / factors)[factors != 0].astype(np.float32)
    if not np.all(np.isfinite(zeros)):
        return None
    part = part.with_edges(x, zeros)
    ends = part.edges[0] - abs(part.edges[0]) - 1, part.edges[-1] + abs(part.edges[-1]) + 1
    middles = np.convolve(np.concatenate([ends[:1], part.edges, ends[1:]]), [0.5, 0.5], "valid")
    return _scaled(part, np.where(part.values + middles * part.linear_terms[x] < 0, below, 1.0))


def elementwise(op: Op, parts: list[Values]) -> Values | None:
    if not all(part.is_known for part in parts):
        return None
    return replace(parts[0], values=_applied(op, [part.values for part in parts]))


def _applied(op: Op, operands: list[Array]) -> Array:
    """Computes the result of an elementwise op for arrays of numbers. A comparison of quantized tensors first rescales
    its operands, as runtimes do."""
    if op.name in _COMPARISONS:
        grids = [op.input(i).per_tensor_quantization for i in range(len(operands))]
        operands = [v if grid is None else as_compared(v, grid[0]) for v, grid in zip(operands, grids, strict=True)]
    return np.asarray(ELEMENTWISE[op.name](*operands), np.float64)


def comparison(op: Op, parts: list[Values]) -> Values | None:
    """Returns a step function: the values of a comparison (of two tensors, or with a number), a SIGN, or an op that
    rounds or clamps.
    """
    if len(op.inputs) == 2 and op.inputs[0] is op.inputs[1]:
        return known_number(float(op.name in _TRUE_OF_ITSELF))
    known = elementwise(op, parts)
    if known is not None:
        return known
    moving = [i for i, part in enumerate(parts) if not part.is_known]
    if len(moving) != 1:
        return None
    number = 0.0 if len(parts) == 1 else parts[1 - moving[0]].values[0]
    if not np.isfinite(number) or (len(parts) == 2 and np.any(parts[1 - moving[0]].values != number)):
        return None
    itself = [unknown(op.input(i)) if i == moving[0] else known_number(number) for i in range(len(parts))]
    return _against(op, parts, moving[0], number) or _against(op, itself, moving[0], number)


def _against(op: Op, parts: list[Values], index: int, number: float) -> Values | None:
    """Returns a comparison's result as a step function of x. The operand with the position `index` is x or a function
    of x; the other operand is `number`.

    The result may change at `number` and at the next float above it. For a quantized x, it may change at every level.
    """
    moving = parts[index]
    x = next(iter(moving.linear_terms))
    factors = moving.linear_terms[x]
    if len(moving.linear_terms) > 1 or x.is_constant or moving.x not in (None, x):
        return None
    if not np.all((factors == 0) | (factors == 1)) or np.any(moving.values[factors == 1] != 0):
        return None
    level = np.array([number], np.float32)
    levels = numbers_of_grid(x)
    if levels is None and (x.type != "FLOAT32" or op.name in (*TO_INTEGERS, *CLAMPS)):
        return None
    more = np.concatenate([level, next_level(level, up=True)]) if levels is None else levels[1:]
    parts = [part.with_edges(x, more) for part in parts]
    edges = parts[0].edges
    below = next_level(edges[:1], up=False) if levels is None else levels[:1]
    inside = np.concatenate([below, edges])
    operands = [part.values + inside * part.linear_terms[x] if part.linear_terms else part.values for part in parts]
    return Values(x, edges, _applied(op, operands)).simplified()


Transfer: TypeAlias = Callable[[Op, list[Values]], "Values | None"]
# For each kind of op, the table has the function that computes the output's `Values` from those of the inputs.
TRANSFER: dict[str, Transfer] = {
    **dict.fromkeys(ELEMENTWISE, elementwise),
    **dict.fromkeys((*_COMPARISONS, *TO_INTEGERS, *CLAMPS, "SIGN"), comparison),
    **dict.fromkeys(ROUNDING, lambda op, parts: parts[0]),
    **dict.fromkeys(SELECTS, _picked),
    "ABS": _magnitude,
    "ADD": _sum,
    "SUB": _sum,
    "NEG": lambda op, parts: _scaled(parts[0], -np.ones_like(parts[0].values)),
    "MUL": _product,
    "DIV": _quotient,
    "CAST": _cast,
}
