"""A tensor of few levels as a sum of signs, each of which compares another tensor with a threshold."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from litebnn.graph import Array, Graph, Op, Tensor
from litebnn.rewriting.affine import next_level
from litebnn.rewriting.signs.monotone import edges_of_levels
from litebnn.rewriting.signs.moved import COMPARING, picked_from
from litebnn.rewriting.signs.step_function import Steps
from litebnn.rewriting.signs.steps import steps_of

# Each sign costs as much as a binary layer; with three, for 2 bits, the layer is still several times faster than float.
MOST_SIGNS = 3
# The largest difference of equal steps after the levels are rounded, relative to the largest level.
_TOLERANCE = 1e-6
_FARTHEST = 8


@dataclass(frozen=True)
class Thermometer:
    """Levels of x, as middle + Σ scales[j] · s_j, where the sign s_j is +1 on one side of thresholds[j], else -1.

    Attributes:
        x: the FLOAT32 tensor, with the same dimensions as the levels.
        thresholds: float32 [k], ascending; a step of double height has two equal ones.
        rising: bool [k], true if s_j is +1 at and above its threshold, else below.
        scales: float64 [k], all of one magnitude.
        middle: the mean of the first and the last level.
        has_zero: True if zero is a level. Then all signs are +1 there, so that ones pad the signs if zeros pad levels.
        is_monotone: True if the levels never fall with x, so that a maximum of levels is the level of the maximum.
    """

    x: Tensor
    thresholds: Array
    rising: Array
    scales: Array
    middle: float
    has_zero: bool
    is_monotone: bool

    def all_rising(self) -> Thermometer:
        """The same levels with rising signs only, for layers without padding."""
        scales = np.where(self.rising, 1, -1) * self.scales
        return replace(self, rising=np.ones_like(self.rising), scales=scales)

    def signs(self, values: Array) -> Array:
        """The signs of values [..., channels]: bool [..., k · channels], true for -1, concatenated by threshold."""
        reached = [values >= threshold for threshold in self.thresholds]
        return np.concatenate([r != rises for r, rises in zip(reached, self.rising, strict=True)], axis=-1)


def find_thermometer(graph: Graph, tensor: Tensor) -> Thermometer | None:
    """The thermometer of a float tensor with few, evenly spaced levels; None for other tensors.

    A level that occurs at a single number, such as SIGN's at zero, is not worth a sign.
    """
    found = edges_of_levels(graph, tensor)
    steps = steps_of(graph, tensor) if found is None else Steps(*found, {})
    x, edges, levels = steps.x, steps.edges, steps.values
    if x is None or x.type != "FLOAT32" or x.dims != tensor.dims or x.channels < 1 or tensor.type != "FLOAT32":
        return None
    if not steps.is_known or steps.step or not np.all(np.isfinite(levels)) or len(edges) < 2:
        return None
    if np.any(next_level(edges[:-1], up=True) == edges[1:]):
        return None
    jumps = np.diff(levels)
    tolerance = _TOLERANCE * np.abs(levels).max()
    times = np.rint(np.abs(jumps) / np.abs(jumps).min()).astype(int)
    step = float(np.abs(jumps).sum() / times.sum())
    if times.sum() > MOST_SIGNS or np.any(np.abs(np.abs(jumps) - times * step) > tolerance):
        return None
    zeros = np.flatnonzero(np.abs(levels) <= tolerance)
    has_zero = len(zeros) > 0
    rising = np.arange(len(edges)) < zeros[0] if has_zero else np.ones(len(edges), np.bool_)
    return Thermometer(
        x,
        np.repeat(edges, times),
        np.repeat(rising, times),
        np.repeat(np.where(rising, 1, -1) * np.sign(jumps), times) * step / 2,
        float(levels[0] + levels[-1]) / 2,
        has_zero,
        bool(np.all(jumps > 0)),
    )


@dataclass(frozen=True)
class MovedLevels:
    """Levels that ops only move or pool; the first of the ops reads the thermometer's levels."""

    thermometer: Thermometer
    ops: tuple[Op, ...]


def find_levels(graph: Graph, tensor: Tensor) -> MovedLevels | None:
    """The few levels of a tensor, and the ops that move them."""
    ops: list[Op] = []
    while (found := find_thermometer(graph, tensor)) is None:
        op = graph.producer(tensor)
        if op is None or len(ops) == _FARTHEST or picked_from(op) != (0,) or len(op.outputs) > 1:
            return None
        ops.append(op)
        tensor = op.input(0)
    if not found.is_monotone and any(op.name in COMPARING for op in ops):
        return None
    return MovedLevels(found, tuple(reversed(ops)))
