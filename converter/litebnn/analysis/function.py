"""A step function of one tensor, plus linear terms, and how functions are brought to common edges."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from litebnn.graph import Array, Tensor


@dataclass(frozen=True)
class Values:
    """The values of a tensor as a step function of another tensor, plus linear terms. The value is `values[0]` below
    `edges[0]`, and `values[i + 1]` from `edges[i]` on.
    """

    # The tensor that the values depend on. It is FLOAT32, quantized (then the edges lie on its grid) or BOOL (read as 0
    # and 1). None for a function without edges.
    x: Tensor | None
    edges: Array  # float32 [k], ascending
    values: Array  # float64 [k + 1]
    # Tensors that are added to the values, each times a factor, float64 [k + 1].
    linear_terms: Mapping[Tensor, Array] = field(default_factory=dict)
    # The coarsest quantization scale to which the values were rounded; 0 if they were not.
    step: float = 0.0

    @property
    def is_known(self) -> bool:
        return not self.linear_terms

    @property
    def constant(self) -> float | None:
        """The value, if it is the same for all inputs of the model."""
        return float(self.values[0]) if self.is_known and len(self.values) == 1 else None

    @property
    def low(self) -> float:
        """The value below the first edge, which is not always the smallest value."""
        return float(self.values[0])

    @property
    def high(self) -> float:
        return float(self.values[-1])

    def simplified(self) -> Values:
        """The same function without edges at which it does not change."""
        kept = np.diff(self.values) != 0
        for factors in self.linear_terms.values():
            kept |= np.diff(factors) != 0
        pick = np.concatenate([[True], kept])
        linear_terms = {tensor: factors[pick] for tensor, factors in self.linear_terms.items()}
        return Values(self.x, self.edges[kept], self.values[pick], linear_terms, self.step)

    def with_edges(self, x: Tensor | None, more: Array) -> Values:
        if not len(more):
            return self if self.x is x else replace(self, x=x)
        edges = np.unique(np.concatenate([self.edges, more])).astype(np.float32)
        pick = np.searchsorted(self.edges, np.concatenate([[-np.inf], edges]), side="right")
        linear_terms = {tensor: factors[pick] for tensor, factors in self.linear_terms.items()}
        return Values(x, edges, self.values[pick], linear_terms)


def known_number(value: float, step: float = 0.0) -> Values:
    return Values(None, np.zeros(0, np.float32), np.array([value], np.float64), step=step)


def unknown(tensor: Tensor) -> Values:
    if tensor.type == "BOOL":
        return Values(tensor, np.array([0.5], np.float32), np.array([0.0, 1.0]))
    return Values(None, np.zeros(0, np.float32), np.zeros(1), {tensor: np.ones(1)})


def sign_of_bits(tensor: Tensor) -> Values:
    return Values(tensor, np.zeros(1, np.float32), np.array([-1.0, 1.0]))


def on_common_edges(parts: Sequence[Values]) -> list[Values] | None:
    """The same functions, each with the edges of all of them; None if they depend on different tensors."""
    sources = {part.x for part in parts if part.x is not None}
    if len(sources) > 1:
        return None
    edges = np.concatenate([part.edges for part in parts]) if parts else np.zeros(0)
    return [part.with_edges(next(iter(sources), None), edges) for part in parts]
