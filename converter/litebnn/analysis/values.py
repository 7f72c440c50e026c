"""Finds the values of tensors, each as a step function of another tensor, by the table of functions in `transfers.py`.

Straight-through estimators (of trained quantizers) subtract a term and add it again, as in (sign(x) - clip(x)) +
clip(x). The values of such a term need not be known: it is kept as a linear term, and cancels.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from litebnn.analysis.constants import ELEMENTWISE
from litebnn.analysis.grids import (
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
from litebnn.analysis.transfers import (
    CLAMPS,
    LEVELS,
    SELECTS,
    TRANSFER,
    Values,
    comparison,
    elementwise,
    known_number,
    unknown,
)
from litebnn.analysis.walks import ops_upstream
from litebnn.contract import ACTIVATION_RANGES, LCE_DEQUANTIZE
from litebnn.graph import NUMPY_TYPES, Array, Graph, Op, Question, Tensor

_MOST_TERMS = 16  # sums of more tensors are tensors of their own; residual networks add up any number
# A CAST of a quantized tensor reads its integers, and not the values for which they stand.
_ON_LEVELS = TRANSFER.keys() - {"CAST"}


def rounded_values(graph: Graph, tensor: Tensor) -> Values | None:
    """Returns the few values of a rounded, monotone function of a float tensor; None for other tensors."""
    steps = rounded_steps(graph, tensor)
    return None if steps is None else Values(*steps)


def _followed(op: Op, of_booleans: bool) -> Sequence[Tensor | None]:
    return op.inputs if op.name in TRANSFER and not (of_booleans and op.output.type == "BOOL") else ()


def _values(graph: Graph, tensor: Tensor, of_booleans: bool) -> Values:
    number = number_of(graph, tensor)
    if number is not None:
        return known_number(number, step_of(tensor))
    op = graph.producer(tensor)
    if op is not None and op.name == LCE_DEQUANTIZE and tensor.type == "FLOAT32":
        return Values(tensor, np.zeros(1, np.float32), np.array([-1.0, 1.0]))
    if op is None or None in op.inputs or not _followed(op, of_booleans):
        return unknown(tensor)
    transfer = TRANSFER[op.name]
    keeps_grid = all(each is not None and same_parameters(each, tensor) for each in op.inputs)
    if op.name in CLAMPS and (of_booleans or not keeps_grid):
        transfer = elementwise
    levels = rounded_values(graph, tensor) if op.name in LEVELS and not of_booleans else None
    if levels is not None:
        return levels
    operands = [(choices_of if of_booleans else values_of)(graph, op.input(i)) for i in range(len(op.inputs))]
    if transfer is comparison:
        operands = [_with_own_term(graph, part) for part in operands]
    parts = _on_common_edges(_of_one_tensor(graph, operands))
    with np.errstate(all="ignore"):
        result = None if parts is None else transfer(op, parts)
        result = None if parts is None or result is None else _stored(graph, op, parts, result)
    if result is None or _steps_without_constants(result) or len(result.linear_terms) > _MOST_TERMS:
        return unknown(tensor)
    before = () if transfer is comparison else operands  # the result of a comparison is exact
    return replace(result.simplified(), step=max([step_of(tensor), *(part.step for part in before)]))


# The answer is the values of a tensor as a function of an upstream tensor. Only known ops lead from the upstream tensor
# to the tensor, and no tensor farther upstream has this property.
values_of = Question(partial(_values, of_booleans=False), partial(_followed, of_booleans=False))
# The answer is like that of `values_of`, but the search ends at a boolean, which may determine the values.
choices_of = Question(partial(_values, of_booleans=True), partial(_followed, of_booleans=True))


def _on_common_edges(parts: Sequence[Values]) -> list[Values] | None:
    """Returns the same step functions, all with the same edges. None if they depend on different tensors."""
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
    if all(part.x is None for part in parts):
        return parts
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
    """Converts a function of the output of a QUANTIZE to a function of its float input, if `sources` contains this
    input.
    """
    rounding, x = graph.producer(function.x), function.x
    if x is None or rounding is None or rounding.name != "QUANTIZE" or rounding.input(0) not in sources:
        return function
    is_float = rounding.input(0).type == "FLOAT32"
    return replace(function, x=rounding.input(0), edges=first_rounded_to(function.edges, x)) if is_float else function


def _steps_without_constants(function: Values) -> bool:
    """True if a function selects between constant tensors, as a sign with a scale or a shift for each channel does. In
    a sum, such a function can only be cancelled by a subtraction of the same tensor.
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
    """True if no operand of a SELECT is rounded: all operands of unknown values have the same quantization as the
    output.
    """
    grids = all(same_parameters(tensor, op.output) for tensor in result.linear_terms)
    either = sum(factors != 0 for factors in result.linear_terms.values()) + (result.values != 0)
    return op.name in SELECTS and grids and bool(np.all(either <= 1))


def _at_levels(graph: Graph, function: Values) -> Values | None:
    """Converts a function of x whose additional terms depend only on x to a step function, if x is quantized. A
    quantized x has no values between two levels, so the sum is a step function too.
    """
    if function.x is None or not len(function.edges):
        return None
    beside = [_levels_of(graph, tensor, function.x) for tensor in function.linear_terms]
    known = [part for part in beside if part is not None]
    parts = _on_common_edges([function, *known])
    if parts is None or len(known) < len(beside):
        return None
    own, *others = parts
    terms = (factors * part.values for factors, part in zip(own.linear_terms.values(), others, strict=True))
    return replace(own, values=sum(terms, own.values), linear_terms={})


def _quantized_upstream(graph: Graph, tensor: Tensor) -> set[Tensor]:
    """Returns the quantized tensors upstream of a tensor, including itself, as far as `_at_levels` can follow."""
    ops = ops_upstream(graph, tensor, lambda op: op.inputs if op.name in _ON_LEVELS else ()) or ()
    read = (source for op in ops if op.name in _ON_LEVELS for source in op.inputs if source is not None)
    return {each for each in (tensor, *read) if not each.is_constant and numbers_of_grid(each) is not None}


def _levels_of(graph: Graph, tensor: Tensor, x: Tensor) -> Values | None:
    """Returns the values of a quantized tensor as a function of x, which is quantized or the input of a QUANTIZE."""

    def follows(op: Op) -> Sequence[Tensor | None]:
        return op.inputs if op.name in _ON_LEVELS and _own_levels(graph, op.output, x) is None else ()

    known: dict[Tensor | None, Values | None] = {None: None, tensor: _own_levels(graph, tensor, x)}
    for op in ops_upstream(graph, tensor, follows) or ():
        if read := follows(op):
            known |= {each: _own_levels(graph, each, x) for each in read if each is not None and each not in known}
            known[op.output] = _levels_after(op, [known[each] for each in read])
    return known[tensor]


def _own_levels(graph: Graph, tensor: Tensor, x: Tensor) -> Values | None:
    """Returns the values of a number, or of a tensor that is x or its rounding; None for other tensors."""
    number, levels = number_of(graph, tensor), numbers_of_grid(tensor)
    if number is not None:
        return known_number(number)
    if levels is None or tensor.is_constant:
        return None
    itself = _of_what_is_rounded(graph, Values(tensor, levels[1:], levels.astype(np.float64)), {x})
    return itself if itself.x is x else None


def _levels_after(op: Op, operands: Sequence[Values | None]) -> Values | None:
    """Returns the values of an op whose operands are functions of one tensor."""
    parts = _on_common_edges([part for part in operands if part is not None])
    if fused_activation(op) != 0 or parts is None or len(parts) < len(operands):
        return None
    numbers = [part.values for part in parts]
    with np.errstate(all="ignore"):
        values = numbers[0] if op.name not in ELEMENTWISE else ELEMENTWISE[op.name](*numbers)
    stored = on_grid(np.asarray(values, np.float64), op.output)
    return None if stored is None else replace(parts[0], values=stored)
