"""A step function of one tensor, which every form of a sign is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from litebnn.graph import Array, Tensor


@dataclass(frozen=True)
class Steps:
    """A function of one tensor: `values[0]` below `edges[0]`, `values[i + 1]` from `edges[i]` on, plus linear terms.

    Attributes:
        x: the tensor: FLOAT32, quantized (with edges on its grid), or BOOL (as 0 and 1); None for a function without
            edges.
        edges: float32 [k], ascending.
        values: float64 [k + 1].
        linear_terms: the factor float64 [k + 1] of each tensor that is added.
        step: the coarsest scale to which the values have been rounded; 0 if they have not.
    """

    x: Tensor | None
    edges: Array
    values: Array
    linear_terms: Mapping[Tensor, Array]
    step: float = 0.0

    @property
    def is_known(self) -> bool:
        return not self.linear_terms

    def simplified(self) -> Steps:
        """The same function without edges at which it does not change."""
        kept = np.diff(self.values) != 0
        for factors in self.linear_terms.values():
            kept |= np.diff(factors) != 0
        pick = np.concatenate([[True], kept])
        linear_terms = {tensor: factors[pick] for tensor, factors in self.linear_terms.items()}
        return Steps(self.x, self.edges[kept], self.values[pick], linear_terms, self.step)


def known_number(value: float) -> Steps:
    return Steps(None, np.zeros(0, np.float32), np.array([value], np.float64), {})


def unknown(tensor: Tensor) -> Steps:
    if tensor.type == "BOOL":
        return Steps(tensor, np.array([0.5], np.float32), np.array([0.0, 1.0]), {})
    return Steps(None, np.zeros(0, np.float32), np.zeros(1), {tensor: np.ones(1)})


def sign_of_bits(tensor: Tensor) -> Steps:
    return Steps(tensor, np.zeros(1, np.float32), np.array([-1.0, 1.0]), {})


def on_common_edges(parts: Sequence[Steps]) -> list[Steps] | None:
    """The same functions, each with the edges of all; None if they are functions of different tensors."""
    sources = {part.x for part in parts if part.x is not None}
    if len(sources) > 1:
        return None
    source = next(iter(sources), None)
    return [with_edges(part, source, np.concatenate([p.edges for p in parts])) for part in parts]


def with_edges(part: Steps, x: Tensor | None, more: Array) -> Steps:
    edges = np.unique(np.concatenate([part.edges, more])).astype(np.float32)
    pick = np.searchsorted(part.edges, np.concatenate([[-np.inf], edges]), side="right")
    linear_terms = {tensor: factors[pick] for tensor, factors in part.linear_terms.items()}
    return Steps(x, edges, part.values[pick], linear_terms)
