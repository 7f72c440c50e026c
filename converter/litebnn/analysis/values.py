"""Finds the values of tensors, each as a step function of another tensor, by the table of functions in `transfers.py`.

Straight-through estimators (of trained quantizers) subtract a term and add it again, as in (sign(x) - clip(x)) +
clip(x). The values of such a term need not be known: it is kept as a linear term, and cancels.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from litebnn.analysis.match import bits_of, fused_activation, number_of
from litebnn.analysis.quantization import (
    computed_on_grid,
    first_rounded_to,
    is_quantized,
    next_of_grid,
    numbers_of_grid,
    on_grid,
    same_parameters,
    step_of,
    undequantized,
)
from litebnn.analysis.rounding import rounded_values
from litebnn.analysis.thresholds import threshold_of
from litebnn.analysis.transfers import (
    CLAMPS,
    SELECTS,
    TO_INTEGERS,
    TRANSFER,
    Transfer,
    Values,
    comparison,
    elementwise,
    known_number,
    rectified,
    unknown,
)
from litebnn.analysis.walks import ops_upstream
from litebnn.contract import ACTIVATION_RANGES, Activation
from litebnn.graph import NUMPY_TYPES, Array, Graph, Op, Question, Tensor

_MOST_TERMS = 16  # a sum with more terms counts as unknown; residual networks add up any number


def _followed(op: Op, kind: str) -> Sequence[Tensor | None]:
    return op.inputs if op.name in TRANSFER and not (kind == "booleans" and op.output.type == "BOOL") else ()


def _values(graph: Graph, tensor: Tensor, kind: str) -> Values:
    number = number_of(graph, tensor)
    if number is not None:
        return known_number(number, step_of(tensor))
    if bits_of(graph, tensor) is not None and tensor.type == "FLOAT32":
        return Values(tensor, np.zeros(1, np.float32), np.array([-1.0, 1.0]))
    op = graph.producer(tensor)
    result = None if op is None or None in op.inputs or not _followed(op, kind) else _after(graph, op, kind)
    if result is None or not _is_kept(result):
        levels = numbers_of_grid(tensor) if kind == "levels" else None
        return unknown(tensor) if levels is None else Values(tensor, levels[1:], levels.astype(np.float64))
    return result


def _after(graph: Graph, op: Op, kind: str) -> Values | None:
    """Returns the values of an op's output from those of its inputs; None if they are unknown."""
    tensor, transfer = op.output, TRANSFER[op.name]
    keeps_grid = all(each is not None and same_parameters(each, tensor) for each in op.inputs)
    if op.name in CLAMPS and (kind != "tensors" or not keeps_grid):
        transfer = elementwise
    if op.name == "RELU" and kind == "lines":
        transfer = rectified
    if op.name in TO_INTEGERS and kind == "tensors" and (levels := rounded_values(graph, tensor)) is not None:
        return levels
    operands = [_QUESTIONS[kind](graph, op.input(i)) for i in range(len(op.inputs))]
    if transfer is comparison:
        operands = [with_own_term(graph, part) for part in operands]
    result = _computed(graph, op, transfer, operands, kind)
    if result is None and is_quantized(tensor) and any(part.x is not None for part in operands):
        result = _computed(graph, op, transfer, [_at_levels(graph, part) for part in operands], kind)
    # The op may bound a rounding to any number of values.
    may_bound = kind == "tensors" and (result is None or not result.is_known)
    if may_bound and (levels := rounded_values(graph, tensor)) is not None:
        return levels
    if result is None:
        return None
    before = () if transfer is comparison else operands  # the result of a comparison is exact
    return replace(result.simplified(), step=max([step_of(tensor), *(part.step for part in before)]))


def _computed(graph: Graph, op: Op, transfer: Transfer, operands: list[Values], kind: str) -> Values | None:
    """Returns the values of an op's output from those of its inputs; None if they are no step function."""
    parts = _on_common_edges(_of_one_tensor(graph, operands))
    if parts is None:
        return None
    with np.errstate(all="ignore"):
        result = transfer(op, parts)
        if result is None:
            return None
        is_line = kind == "lines" and not result.is_known and fused_activation(op) == Activation.RELU
        return rectified(op, [result]) if is_line else _stored(op, parts, result)


# The question `values_of` asks for the values of a tensor, as a step function of an upstream tensor. The upstream
# tensor is the farthest one from which only ops that this module knows lead to the tensor.
values_of = Question(partial(_values, kind="tensors"), partial(_followed, kind="tensors"))
# The question `choices_of` also asks for the values of a tensor as a step function of an upstream tensor. Its search
# upstream ends at a boolean tensor, too. The answer may then be a step function of this boolean tensor.
choices_of = Question(partial(_values, kind="booleans"), partial(_followed, kind="booleans"))
# The question `_levels_of` asks for the values of a tensor as a step function, as `values_of` does. If the values of a
# quantized tensor are unknown, they are a step function of the tensor itself, with a step at each level.
_levels_of = Question(partial(_values, kind="levels"), partial(_followed, kind="levels"))
# The question `lines_of` also follows a RELU, to an edge where its input is zero. Below the edge, the value is 0.
lines_of = Question(partial(_values, kind="lines"), partial(_followed, kind="lines"))
_QUESTIONS = {"tensors": values_of, "booleans": choices_of, "levels": _levels_of, "lines": lines_of}


def _on_common_edges(parts: Sequence[Values]) -> list[Values] | None:
    """Returns the same step functions, rewritten so that all have the same edges. None if they depend on different
    tensors."""
    sources = {part.x for part in parts if part.x is not None}
    edges = np.concatenate([np.zeros(0), *(part.edges for part in parts)])
    return None if len(sources) > 1 else [part.with_edges(next(iter(sources), None), edges) for part in parts]


def with_own_term(graph: Graph, part: Values) -> Values:
    """Simplifies `part`, a step function of x plus a weighted sum of tensors (the linear terms). If this sum is a
    multiple of x plus a constant, returns the function with x as its only linear term, otherwise `part` itself.
    """
    own = None if part.x is None or part.is_known else values_of(graph, part.x)
    if part.x is None or own is None or own.x is not None or own.linear_terms.keys() != part.linear_terms.keys():
        return part
    factors, *others = (part.linear_terms[tensor] / terms for tensor, terms in own.linear_terms.items())
    if part.x in own.linear_terms or any(np.any(other != factors) for other in others):
        return part
    return replace(part, values=part.values - factors * own.values, linear_terms={part.x: factors})


def _of_one_tensor(graph: Graph, parts: list[Values]) -> list[Values]:
    """Returns the same functions, rewritten as functions of one common tensor x.

    All functions must depend on x, or on the packed or rounded form or the magnitude of x.
    """
    if all(part.x is None for part in parts):
        return parts
    read = {part.x for part in parts} | {each for part in parts for each in part.linear_terms if is_quantized(each)}
    before = (graph.producer(tensor, "QUANTIZE", "ABS") for tensor in read)
    sources = read | {op.input(0) for op in before if op is not None}
    packed = [_of_what_is_packed(graph, part, sources) for part in parts]
    sources = {part.x for part in packed}
    return [_of_magnitude(graph, _of_what_is_rounded(graph, part, sources), sources) for part in packed]


def _of_what_is_packed(graph: Graph, part: Values, sources: set[Tensor | None]) -> Values:
    packed = graph.producer(bits_of(graph, part.x))
    threshold = threshold_of(packed)
    if packed is None or threshold is None or np.any(threshold.falls) or threshold.level.size > 1:
        return part
    source, edges = packed.input(0), part.edges + threshold.level
    if source not in sources:
        source = undequantized(graph, source)
        edges = next_of_grid(edges, source)
    return replace(part, x=source, edges=edges) if source in sources and source.type != "BOOL" else part


def _of_what_is_rounded(graph: Graph, function: Values, sources: set[Tensor | None]) -> Values:
    """Converts a function of the output of a QUANTIZE to a function of its float input. The function stays
    unchanged unless another function in the same computation (`sources`) depends on this float input too.
    """
    rounding, x = graph.producer(function.x, "QUANTIZE"), function.x
    if x is None or rounding is None or rounding.input(0) not in sources:
        return function
    is_float = rounding.input(0).type == "FLOAT32"
    return replace(function, x=rounding.input(0), edges=first_rounded_to(function.edges, x)) if is_float else function


def _of_magnitude(graph: Graph, function: Values, sources: set[Tensor | None]) -> Values:
    """Converts a function of |x| to a function of x, if another function in the same computation depends on x."""
    magnitude = graph.producer(function.x, "ABS")
    if magnitude is None or magnitude.output.type != "FLOAT32" or magnitude.input(0) not in sources:
        return function
    return function.of_magnitude(magnitude.input(0))


def _at_levels(graph: Graph, part: Values) -> Values:
    """Returns the same function with its linear terms (tensors that are added, each times a factor) replaced by step
    functions of one quantized tensor. A quantized tensor takes no values between two levels, so the result is exact. If
    the terms cannot be replaced, returns the function unchanged.
    """
    follows = partial(_followed, kind="levels")
    if any(ops_upstream(graph, tensor, follows) is None for tensor in part.linear_terms):
        return part
    terms = [_levels_of(graph, tensor) for tensor in part.linear_terms]
    parts = _on_common_edges(_of_one_tensor(graph, [part, *terms]))
    if parts is None or not all(term.is_known for term in terms):
        return part
    own, *others = parts
    added = (factors * term.values for factors, term in zip(own.linear_terms.values(), others, strict=True))
    return replace(own, values=sum(added, own.values), linear_terms={})


def _is_kept(function: Values) -> bool:
    are_constant = {tensor.is_constant for tensor in function.linear_terms}
    shifts = len(function.edges) == 0 and len(are_constant) > 1  # x + b for each channel is a tensor of its own
    return not shifts and not _steps_without_constants(function) and len(function.linear_terms) <= _MOST_TERMS


def _steps_without_constants(function: Values) -> bool:
    """True if a function selects between constant tensors, as a sign with a scale or a shift for each channel does. In
    a sum, such a function can only be cancelled by a subtraction of the same tensor.
    """
    terms = function.linear_terms
    return bool(terms) and len(function.edges) > 0 and all(tensor.is_constant for tensor in terms)


def _stored(op: Op, parts: list[Values], result: Values) -> Values | None:
    """Returns the values of an op's output: the computed values `result` after the fused activation and rounding."""
    activation = fused_activation(op)
    plain = activation == 0 and op.output.type in ("FLOAT32", "BOOL")
    if plain or activation is None:
        return result if plain else None
    if not result.is_known and not _is_on_output_grid(op, result):
        return None
    are_levels = all(part.is_known and part.values.shape == result.values.shape for part in parts)
    levels = computed_on_grid(op, [part.values for part in parts]) if are_levels else None
    values: Array | None = np.clip(result.values if levels is None else levels, *ACTIVATION_RANGES[activation])
    if op.output.quantization is not None or op.output.type not in NUMPY_TYPES:
        values = None if values is None else on_grid(values, op.output)
    return None if values is None else replace(result, values=values)


def _is_on_output_grid(op: Op, result: Values) -> bool:
    """True if a SELECT rounds none of its operands: all operands whose values are unknown have the same quantization as
    the output.
    """
    grids = all(same_parameters(tensor, op.output) for tensor in result.linear_terms)
    either = sum(factors != 0 for factors in result.linear_terms.values()) + (result.values != 0)
    return op.name in SELECTS and grids and bool(np.all(either <= 1))
