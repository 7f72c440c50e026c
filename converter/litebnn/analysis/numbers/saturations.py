"""Finds the numbers that a tensor takes in many places because a clamp limits it, such as the 1 and -1 of hardtanh, or
because it is padded with them.

The sum of two such tensors is exactly 0 where the numbers cancel.
"""

from __future__ import annotations

import math

import numpy as np

from litebnn.analysis.constants import ELEMENTWISE
from litebnn.analysis.layouts import picked_from
from litebnn.analysis.match import fused_activation, number_of, output_limits
from litebnn.analysis.padding import PADDING, constant_padding
from litebnn.analysis.transfers import CLAMPS
from litebnn.graph import Graph, Op, Question, Tensor

_MOST = 16
_ARITHMETIC = ("ABS", "ADD", "DIV", "MUL", "NEG", "SQUARE", "SUB")
_KEEPS_POSITIVE = ("ELU", "LEAKY_RELU", "PRELU")
_NONE: frozenset[float] = frozenset()


def _read(op: Op) -> list[Tensor | None]:
    if op.name in (*_ARITHMETIC, *CLAMPS):
        return op.inputs
    return (
        op.inputs[:1]
        if op.name in ("MAX_POOL_2D", *_KEEPS_POSITIVE, *PADDING)
        else [op.optional(index) for index in picked_from(op)]
    )


def _saturations(graph: Graph, tensor: Tensor) -> frozenset[float]:
    if (number := number_of(graph, tensor)) is not None:
        return frozenset({number})
    op = graph.producer(tensor)
    if op is None or tensor.type != "FLOAT32" or fused_activation(op) is None:
        return _NONE
    read = [_NONE if each is None else saturations_of(graph, each) for each in _read(op)]
    low, high = output_limits(op)
    limits = {limit for limit in (low, high) if math.isfinite(limit)}
    padding = constant_padding(op) if op.name in PADDING else None
    if padding is not None and np.any(padding.amounts) and math.isfinite(padding.value):
        limits.add(padding.value)
    numbers = limits.union(*([_computed(op, read)] if op.name in _ARITHMETIC else read))
    low = 0 if op.name in _KEEPS_POSITIVE else low
    kept = frozenset(number for number in numbers if low <= number <= high)
    return kept if len(kept) <= _MOST else _NONE


def _computed(op: Op, read: list[frozenset[float]]) -> set[float]:
    """The results of an op for all numbers that its inputs often are, rounded as the runtime does."""
    parts = [np.array(sorted(numbers), np.float32) for numbers in read]
    with np.errstate(all="ignore"):
        results = (
            ELEMENTWISE[op.name](parts[0]) if len(parts) == 1 else ELEMENTWISE[op.name](parts[0][:, None], parts[1])
        )
    return {float(number) for number in results.reshape(-1) if np.isfinite(number)}


# saturations_of(graph, tensor) returns the numbers that a float tensor takes in many places, as far as they are known.
saturations_of = Question(_saturations, _read)
