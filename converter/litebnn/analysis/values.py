"""Finds the values of tensors, each as a step function of another tensor. A table has a function for each kind of op,
from the values of the op's inputs to those of its output.

Straight-through estimators (of trained quantizers) subtract a term and add it again, as in (sign(x) - clip(x)) +
clip(x). The values of such a term need not be known: it is kept as a linear term, and cancels.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np

from litebnn.analysis.affine import next_level
from litebnn.analysis.constants import ELEMENTWISE
from litebnn.analysis.grids import (
    as_compared,
    computed_on_grid,
    first_rounded_to,
    is_quantized,
    next_of_grid,
    numbers_of_grid,
    on_grid,
    same_parameters,
    step_of,
)
from litebnn.analysis.match import bits_of, fused_activation, number_of
from litebnn.analysis.rounding import rounded_steps
from litebnn.analysis.thresholds import threshold_of
from litebnn.contract import ACTIVATION_RANGES, LCE_DEQUANTIZE
from litebnn.graph import NUMPY_TYPES, Array, Graph, Op, Question, Tensor

_COMPARISONS = ("EQUAL", "NOT_EQUAL", "GREATER_EQUAL", "GREATER", "LESS_EQUAL", "LESS")
_SELECTS = ("SELECT", "SELECT_V2")
_TRUE_OF_ITSELF = ("EQUAL", "GREATER_EQUAL", "LESS_EQUAL")
_LEVELS = ("ROUND", "FLOOR", "CEIL")
_CLAMPS = ("RELU", "RELU6", "RELU_0_TO_1", "RELU_N1_TO_1", "MINIMUM", "MAXIMUM")
_MOST_TERMS = 16  # sums of more tensors are tensors of their own; residual networks add up any number
_MOST_OPS_ON_LEVELS = 4


@dataclass(frozen=True)
class Values:
    """`Values` has the values of a tensor as a step function of another tensor, plus linear terms. The value is
    `values[0]` below `edges[0]`, and `values[i + 1]` from `edges[i]` on.
    """

    # The field `x` is the tensor that the values depend on. It is FLOAT32, quantized (then the edges lie on its grid)
    # or BOOL, read as 0 and 1. For a function without edges, `x` is None.
    x: Tensor | None
    edges: Array  # float32 [k], ascending
    values: Array  # float64 [k + 1]
    # `linear_terms` has the tensors that are added to the values, each times a factor, float64 [k + 1].
    linear_terms: Mapping[Tensor, Array] = field(default_factory=dict)
    # `step` is the coarsest quantization scale to which the values were rounded; 0 without rounding.
    step: float = 0.0

    @property
    def is_known(self) -> bool:
        return not self.linear_terms

    @property
    def constant(self) -> float | None:
        """Returns the value, if it is the same for all inputs of the model."""
        return float(self.values[0]) if self.is_known and len(self.values) == 1 else None

    @property
    def falls(self) -> bool:
        """True if the last value is below the first one."""
        return bool(self.values[-1] < self.values[0])

    def simplified(self) -> Values:
        """Returns the same function without edges at which it does not change."""
        rows = (self.values, *self.linear_terms.values())
        kept = np.any([np.diff(row) != 0 for row in rows], axis=0)
        return self._at(self.x, self.edges[kept], np.concatenate([[True], kept]))

    def with_edges(self, x: Tensor | None, more: Array) -> Values:
        if not len(more):
            return replace(self, x=x)
        edges = np.unique(np.concatenate([self.edges, more])).astype(np.float32)
        return self._at(x, edges, np.searchsorted(self.edges, np.concatenate([[-np.inf], edges]), side="right"))

    def _at(self, x: Tensor | None, edges: Array, places: Array) -> Values:
        terms = {tensor: factors[places] for tensor, factors in self.linear_terms.items()}
        return Values(x, edges, self.values[places], terms, self.step)


def known_number(value: float, step: float = 0.0) -> Values:
    return Values(None, np.zeros(0, np.float32), np.array([value], np.float64), step=step)


def unknown(tensor: Tensor) -> Values:
    if tensor.type == "BOOL":
        return Values(tensor, np.array([0.5], np.float32), np.array([0.0, 1.0]))
    return Values(None, np.zeros(0, np.float32), np.zeros(1), {tensor: np.ones(1)})


def rounded_values(graph: Graph, tensor: Tensor) -> Values | None:
    """Returns the few values of a rounded, monotone function of a float tensor; None for other tensors."""
    steps = rounded_steps(graph, tensor)
    return None if steps is None else Values(*steps)


def _followed(op: Op, of_booleans: bool) -> Sequence[Tensor | None]:
    return op.inputs if op.name in _TRANSFER and not (of_booleans and op.output.type == "BOOL") else ()


def _values(graph: Graph, tensor: Tensor, of_booleans: bool) -> Values:
    number = number_of(graph, tensor)
    if number is not None:
        return known_number(number, step_of(tensor))
    op = graph.producer(tensor)
    if op is not None and op.name == LCE_DEQUANTIZE and tensor.type == "FLOAT32":
        return Values(tensor, np.zeros(1, np.float32), np.array([-1.0, 1.0]))
    if op is None or None in op.inputs or not _followed(op, of_booleans):
        return unknown(tensor)
    transfer = _TRANSFER[op.name]
    keeps_grid = all(each is not None and same_parameters(each, tensor) for each in op.inputs)
    if op.name in _CLAMPS and (of_booleans or not keeps_grid):
        transfer = _elementwise
    levels = rounded_values(graph, tensor) if op.name in _LEVELS and not of_booleans else None
    if levels is not None:
        return levels
    operands = [(choices_of if of_booleans else values_of)(graph, op.input(i)) for i in range(len(op.inputs))]
    if transfer is _comparison:
        operands = [_with_own_term(graph, part) for part in operands]
    parts = _on_common_edges(_of_one_tensor(graph, operands))
    with np.errstate(all="ignore"):
        result = None if parts is None else transfer(op, parts)
        result = None if parts is None or result is None else _stored(graph, op, parts, result)
    if result is None or _steps_without_constants(result) or len(result.linear_terms) > _MOST_TERMS:
        return unknown(tensor)
    before = () if transfer is _comparison else operands  # the result of a comparison is exact
    return replace(result.simplified(), step=max([step_of(tensor), *(part.step for part in before)]))


# The question finds the values of a tensor as a function of the farthest upstream tensor that known ops lead to.
values_of = Question(partial(_values, of_booleans=False), partial(_followed, of_booleans=False))
# The question finds values like `values_of`, but a boolean ends the search, and may determine the values.
choices_of = Question(partial(_values, of_booleans=True), partial(_followed, of_booleans=True))


def _on_common_edges(parts: Sequence[Values]) -> list[Values] | None:
    """Returns the same step functions, each split at the edges of all; None if they depend on different tensors."""
    sources = {part.x for part in parts if part.x is not None}
    edges = np.concatenate([np.zeros(0), *(part.edges for part in parts)])
    return None if len(sources) > 1 else [part.with_edges(next(iter(sources), None), edges) for part in parts]


def _with_own_term(graph: Graph, part: Values) -> Values:
    """Returns the same function with x as its only linear term, if its linear terms add up to a multiple of x."""
    own = None if part.x is None or part.is_known else values_of(graph, part.x)
    if part.x is None or own is None or own.x is not None or own.linear_terms.keys() != part.linear_terms.keys():
        return part
    factors, *others = (part.linear_terms[tensor] / terms for tensor, terms in own.linear_terms.items())
    if part.x in own.linear_terms or any(np.any(other != factors) for other in others):
        return part
    return replace(part, values=part.values - factors * own.values, linear_terms={part.x: factors})


def _of_one_tensor(graph: Graph, parts: list[Values]) -> list[Values]:
    """Returns the same functions with one common tensor x.

    If some functions depend on a tensor and others on its packed or rounded form, all become functions of the tensor.
    """
    beside = {tensor for part in parts for tensor in part.linear_terms if is_quantized(tensor)}
    rounded = {op.input(0) for op in map(graph.producer, beside) if op is not None and op.name == "QUANTIZE"}
    levels = {source for tensor in beside for source in _quantized_upstream(graph, tensor)}
    sources = {part.x for part in parts} | levels | rounded
    packed = [_of_what_is_packed(graph, part, sources) for part in parts]
    sources = {part.x for part in packed}
    return [_of_what_is_rounded(graph, part, sources) for part in packed]


def _of_what_is_packed(graph: Graph, part: Values, sources: set[Tensor | None]) -> Values:
    packed = graph.producer(bits_of(graph, part.x))
    threshold = threshold_of(packed)
    if packed is None or threshold is None or np.any(threshold.falls) or threshold.level.size > 1:
        return part
    source, edges = packed.input(0), part.edges + threshold.level
    numbers = graph.producer(source)
    if numbers is not None and numbers.name == "DEQUANTIZE" and source not in sources:
        source = numbers.input(0)
        edges = next_of_grid(edges, source)
    return replace(part, x=source, edges=edges) if source in sources and source.type != "BOOL" else part


def _of_what_is_rounded(graph: Graph, function: Values, sources: set[Tensor | None]) -> Values:
    """Converts a function of a QUANTIZE's output to a function of its float input, if `sources` has this input."""
    rounding, x = graph.producer(function.x), function.x
    if x is None or rounding is None or rounding.name != "QUANTIZE" or rounding.input(0) not in sources:
        return function
    is_float = rounding.input(0).type == "FLOAT32"
    return replace(function, x=rounding.input(0), edges=first_rounded_to(function.edges, x)) if is_float else function


def _steps_without_constants(function: Values) -> bool:
    """True if a function steps between constant tensors, such as a sign with a scale or shift for each channel.

    In a sum, only a subtraction of the same tensor cancels such a function.
    """
    terms = function.linear_terms
    return bool(terms) and len(function.edges) > 0 and all(tensor.is_constant for tensor in terms)


def _stored(graph: Graph, op: Op, parts: list[Values], result: Values) -> Values | None:
    """Returns the values of an op after its fused activation and the rounding of its output."""
    activation = fused_activation(op)
    plain = activation == 0 and op.output.type in ("FLOAT32", "BOOL")
    if plain or activation is None:
        return result if plain else None
    if not result.is_known and not _is_on_output_grid(op, result):
        by_levels = _at_levels(graph, result)
        if by_levels is None:
            return None
        result = by_levels
    are_levels = all(part.is_known and part.values.shape == result.values.shape for part in parts)
    levels = computed_on_grid(op, [part.values for part in parts]) if are_levels else None
    values: Array | None = np.clip(result.values if levels is None else levels, *ACTIVATION_RANGES[activation])
    if op.output.quantization is not None or op.output.type not in NUMPY_TYPES:
        values = None if values is None else on_grid(values, op.output)
    return None if values is None else replace(result, values=values)


def _is_on_output_grid(op: Op, result: Values) -> bool:
    """True if no operand of a SELECT is rounded, because all those of unknown values lie on the grid of its output."""
    grids = all(same_parameters(tensor, op.output) for tensor in result.linear_terms)
    either = sum(factors != 0 for factors in result.linear_terms.values()) + (result.values != 0)
    return op.name in _SELECTS and grids and bool(np.all(either <= 1))


def _at_levels(graph: Graph, function: Values) -> Values | None:
    """Converts a function of x whose additional terms are computed from x alone to a step function, on a grid.

    A grid has no values between two levels, so the sum is a step function too.
    """
    if function.x is None or not len(function.edges):
        return None
    beside = [_levels_of(graph, tensor, function.x, _MOST_OPS_ON_LEVELS) for tensor in function.linear_terms]
    known = [part for part in beside if part is not None]
    parts = _on_common_edges([function, *known])
    if parts is None or len(known) < len(beside):
        return None
    own, *others = parts
    terms = (factors * part.values for factors, part in zip(own.linear_terms.values(), others, strict=True))
    return replace(own, values=sum(terms, own.values), linear_terms={})


def _quantized_upstream(graph: Graph, tensor: Tensor, farthest: int = _MOST_OPS_ON_LEVELS) -> set[Tensor]:
    """Returns the quantized tensors upstream of a tensor, including itself, as far as `_at_levels` can follow."""
    found = set() if tensor.is_constant or numbers_of_grid(tensor) is None else {tensor}
    op = graph.producer(tensor)
    if op is None or farthest == 0 or op.name not in _ON_LEVELS:
        return found
    return found.union(*(_quantized_upstream(graph, each, farthest - 1) for each in op.inputs if each is not None))


def _levels_of(graph: Graph, tensor: Tensor, x: Tensor, farthest: int) -> Values | None:
    """Returns the values of a quantized tensor as a function of x, which is quantized or the input of a QUANTIZE."""
    number, levels, op = number_of(graph, tensor), numbers_of_grid(tensor), graph.producer(tensor)
    if number is not None:
        return known_number(number)
    if levels is not None and not tensor.is_constant:
        itself = _of_what_is_rounded(graph, Values(tensor, levels[1:], levels.astype(np.float64)), {x})
        if itself.x is x:
            return itself
    if op is None or farthest == 0 or fused_activation(op) != 0 or op.name not in _ON_LEVELS or None in op.inputs:
        return None
    known = [_levels_of(graph, op.input(index), x, farthest - 1) for index in range(len(op.inputs))]
    parts = _on_common_edges([part for part in known if part is not None])
    if parts is None or len(parts) < len(op.inputs):
        return None
    operands = [part.values for part in parts]
    with np.errstate(all="ignore"):
        values = operands[0] if op.name not in ELEMENTWISE else ELEMENTWISE[op.name](*operands)
    stored = on_grid(np.asarray(values, np.float64), tensor)
    return None if stored is None else replace(parts[0], values=stored)


def _sum(op: Op, parts: list[Values]) -> Values:
    left, right = parts
    factor = -1.0 if op.name == "SUB" else 1.0
    terms: dict[Tensor, Array] = dict(left.linear_terms)
    for tensor, factors in right.linear_terms.items():
        terms[tensor] = terms.pop(tensor, 0.0) + factor * factors
    return _with_terms(left, left.values + factor * right.values, terms)


def _with_terms(part: Values, values: Array, terms: Mapping[Tensor, Array]) -> Values:
    """Makes a function with the edges of `part`, without the terms that cancel."""
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
    return _elementwise(op, parts)


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
    if dtype is None or not part.is_known or not np.all(np.isfinite(part.values)):
        return None
    return replace(part, values=part.values.astype(dtype).astype(np.float64))


def _elementwise(op: Op, parts: list[Values]) -> Values | None:
    if not all(part.is_known for part in parts):
        return None
    return replace(parts[0], values=np.asarray(ELEMENTWISE[op.name](*(part.values for part in parts)), np.float64))


def _comparison(op: Op, parts: list[Values]) -> Values | None:
    """Returns the values of a comparison (perhaps with a number), a SIGN, or an op that rounds or clamps levels."""
    if len(op.inputs) == 2 and op.inputs[0] is op.inputs[1]:
        return known_number(float(op.name in _TRUE_OF_ITSELF))
    known = _elementwise(op, parts)
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
    """Returns a comparison's result as a step function of x. One operand is x or known values, the other is `number`.

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
    if levels is None and (x.type != "FLOAT32" or op.name in (*_LEVELS, *_CLAMPS)):
        return None
    more = np.concatenate([level, next_level(level, up=True)]) if levels is None else levels[1:]
    parts = [part.with_edges(x, more) for part in parts]
    edges = parts[0].edges
    below = next_level(edges[:1], up=False) if levels is None else levels[:1]
    inside = np.concatenate([below, edges])
    operands = [part.values + inside * part.linear_terms[x] if part.linear_terms else part.values for part in parts]
    if op.name in _COMPARISONS:
        grids = [op.input(i).per_tensor_quantization for i in range(len(operands))]
        operands = [v if grid is None else as_compared(v, grid[0]) for v, grid in zip(operands, grids, strict=True)]
    return Values(x, edges, np.asarray(ELEMENTWISE[op.name](*operands), np.float64)).simplified()


# For each kind of op, the table has the function from its inputs' values to its output's.
_TRANSFER: dict[str, Callable[[Op, list[Values]], Values | None]] = {
    **dict.fromkeys(ELEMENTWISE, _elementwise),
    **dict.fromkeys((*_COMPARISONS, *_LEVELS, *_CLAMPS, "SIGN"), _comparison),
    **dict.fromkeys(("QUANTIZE", "DEQUANTIZE"), lambda op, parts: parts[0]),
    **dict.fromkeys(_SELECTS, _picked),
    "ADD": _sum,
    "SUB": _sum,
    "NEG": lambda op, parts: _scaled(parts[0], -np.ones_like(parts[0].values)),
    "MUL": _product,
    "DIV": _quotient,
    "CAST": _cast,
}
# A CAST of a quantized tensor reads its integers, which are not its values.
_ON_LEVELS = _TRANSFER.keys() - {"CAST"}
