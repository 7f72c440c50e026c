"""A step function of one tensor: what a sign is, in whatever ops exporters have left it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from litebnn.graph import Array, Tensor


@dataclass(frozen=True)
class Steps:
    """A function of one tensor: `values[0]` below `edges[0]`, `values[i + 1]` from `edges[i]` on, plus the rest.

    Attributes:
        x: the tensor, of FLOAT32, quantized (edges are numbers of its grid), or BOOL (0 and 1 here); None for a
            function that has no edges.
        edges: float32 [k], ascending.
        values: float64 [k + 1].
        rest: float64 [k + 1] for each tensor that is added, multiplied by it.
        step: that of the coarsest grid that the values have been rounded to, 0 where they have not.
    """

    x: Tensor | None
    edges: Array
    values: Array
    rest: Mapping[Tensor, Array]
    step: float = 0.0

    @property
    def is_known(self) -> bool:
        return not self.rest

    def simplified(self) -> Steps:
        """The same function with the edges alone at which it changes."""
        kept = np.diff(self.values) != 0
        for factors in self.rest.values():
            kept |= np.diff(factors) != 0
        pick = np.concatenate([[True], kept])
        rest = {tensor: factors[pick] for tensor, factors in self.rest.items()}
        return Steps(self.x, self.edges[kept], self.values[pick], rest, self.step)


def known_number(value: float) -> Steps:
    return Steps(None, np.zeros(0, np.float32), np.array([value], np.float64), {})


def unknown(tensor: Tensor) -> Steps:
    if tensor.type == "BOOL":
        return Steps(tensor, np.array([0.5], np.float32), np.array([0.0, 1.0]), {})
    return Steps(None, np.zeros(0, np.float32), np.zeros(1), {tensor: np.ones(1)})


def sign_of_bits(tensor: Tensor) -> Steps:
    return Steps(tensor, np.zeros(1, np.float32), np.array([-1.0, 1.0]), {})


def on_common_edges(parts: Sequence[Steps]) -> list[Steps] | None:
    """The same functions with the edges of all of them; None where they are functions of different tensors."""
    sources = {part.x for part in parts if part.x is not None}
    if len(sources) > 1:
        return None
    source = next(iter(sources), None)
    return [with_edges(part, source, np.concatenate([p.edges for p in parts])) for part in parts]


def with_edges(part: Steps, x: Tensor | None, more: Array) -> Steps:
    edges = np.unique(np.concatenate([part.edges, more])).astype(np.float32)
    pick = np.searchsorted(part.edges, np.concatenate([[-np.inf], edges]), side="right")
    rest = {tensor: factors[pick] for tensor, factors in part.rest.items()}
    return Steps(x, edges, part.values[pick], rest)
