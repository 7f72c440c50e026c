"""Functions of a quantized tensor, or of the float tensor that it rounds, evaluated level by level."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from litebnn.analysis.constants import ELEMENTWISE
from litebnn.analysis.function import Values, known_number, on_common_edges
from litebnn.analysis.grids import first_rounded_to, numbers_of_grid, on_grid
from litebnn.analysis.match import fused_activation, number_of
from litebnn.graph import Graph, Tensor

_DEEPEST = 4
_FOLLOWED = {"QUANTIZE", "DEQUANTIZE", *ELEMENTWISE}


def at_levels(graph: Graph, function: Values) -> Values | None:
    """A function of x whose additional terms are computed from x alone, on a grid.

    A grid has no values between two levels, so the sum is a step function too.
    """
    if function.x is None or not len(function.edges):
        return None
    tensors = list(function.linear_terms)
    beside = [_levels_of(graph, tensor, function.x, _DEEPEST) for tensor in tensors]
    known = [part for part in beside if part is not None]
    parts = on_common_edges([function, *known])
    if parts is None or len(known) < len(tensors):
        return None
    own, *others = parts
    terms = (own.linear_terms[tensor] * part.values for tensor, part in zip(tensors, others, strict=True))
    return replace(own, values=sum(terms, own.values), linear_terms={})


def quantized_upstream(graph: Graph, tensor: Tensor, farthest: int = _DEEPEST) -> set[Tensor]:
    """The quantized tensors from which a tensor is computed, including itself, as far as `at_levels` can follow."""
    found = set() if tensor.is_constant or numbers_of_grid(tensor) is None else {tensor}
    op = graph.producer(tensor)
    if op is None or farthest == 0 or op.name not in _FOLLOWED:
        return found
    return found.union(*(quantized_upstream(graph, source, farthest - 1) for source in op.inputs if source is not None))


def of_what_is_rounded(graph: Graph, function: Values, sources: set[Tensor | None]) -> Values:
    """Converts a function of a QUANTIZE's output to a function of its float input, if that is among the sources."""
    rounding = graph.producer(function.x)
    if function.x is None or rounding is None or rounding.name != "QUANTIZE" or rounding.input(0) not in sources:
        return function
    if rounding.input(0).type != "FLOAT32":
        return function
    return replace(function, x=rounding.input(0), edges=first_rounded_to(function.edges, function.x))


def _levels_of(graph: Graph, tensor: Tensor, x: Tensor, farthest: int) -> Values | None:
    """The values of a quantized tensor as a function of x, which is quantized or the input of a QUANTIZE."""
    number, levels, op = number_of(graph, tensor), numbers_of_grid(tensor), graph.producer(tensor)
    if number is not None:
        return known_number(number)
    if levels is not None and not tensor.is_constant:
        itself = of_what_is_rounded(graph, Values(tensor, levels[1:], levels.astype(np.float64)), {x})
        if itself.x is x:
            return itself
    if op is None or farthest == 0 or fused_activation(op) != 0:
        return None
    if op.name not in _FOLLOWED or None in op.inputs:
        return None
    known = [_levels_of(graph, op.input(index), x, farthest - 1) for index in range(len(op.inputs))]
    parts = on_common_edges([part for part in known if part is not None])
    if parts is None or len(parts) < len(op.inputs):
        return None
    operands = [part.values for part in parts]
    with np.errstate(all="ignore"):
        values = operands[0] if op.name not in ELEMENTWISE else ELEMENTWISE[op.name](*operands)
    stored = on_grid(np.asarray(values, np.float64), tensor)
    return None if stored is None else replace(parts[0], values=stored)
