"""A tensor of few levels as a sum of signs: each tells whether another tensor has reached one of its thresholds."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from litebnn.graph import Array, Graph, Op, Tensor
from litebnn.rewriting.affine import next_level
from litebnn.rewriting.signs.monotone import edges_of_levels
from litebnn.rewriting.signs.moved import COMPARING, picked_from
from litebnn.rewriting.signs.step_function import Steps
from litebnn.rewriting.signs.steps import steps_of

# Each costs as much as a layer of signs; with three, which 2 bits take, it is still several times as fast as in float.
MOST_SIGNS = 3
# Steps that were of one height differ by this, relative to the largest level, once the levels are rounded.
_TOLERANCE = 1e-6
_FARTHEST = 8


@dataclass(frozen=True)
class Thermometer:
    """Levels of x, as middle + Σ scales[j] · s_j, where the sign s_j is +1 on one side of thresholds[j], else -1.

    Attributes:
        x: the tensor, FLOAT32, of the same dimensions as that of the levels.
        thresholds: float32 [k], ascending, one twice where a step is two high.
        rising: bool [k]: whether s_j is +1 from its threshold on (else below).
        scales: float64 [k], of one magnitude.
        middle: the mean of the first and the last level.
        has_zero: whether zero is a level. Then all signs are +1 there: ones pad them where zeros pad the levels.
        is_monotone: whether the levels never fall with x, so that the largest of several is that of the largest x.
    """

    x: Tensor
    thresholds: Array
    rising: Array
    scales: Array
    middle: float
    has_zero: bool
    is_monotone: bool

    def all_rising(self) -> Thermometer:
        """The same levels of signs that are +1 from their thresholds on, for layers that pad with nothing."""
        return self._all(True)

    def forms(self) -> tuple[Thermometer, ...]:
        """The same levels in all the signs that layers may read: padded or not, and as found of x or of -x.

        Those of -x have the thresholds in the other order, and none of them rises with x where all rise with -x.
        """
        backwards = replace(self, **{key: getattr(self, key)[::-1] for key in ("thresholds", "rising", "scales")})
        return self, self.all_rising(), backwards, backwards._all(False)

    def parts(self, count: int) -> tuple[Thermometer, ...]:
        """The same levels where x lies between bounds, within which are no more than so many thresholds."""
        count = min(max(count, 1), len(self.thresholds))
        return tuple(self._part(start, start + count) for start in range(len(self.thresholds) - count + 1))

    def _part(self, start: int, end: int) -> Thermometer:
        ends = np.where(self.rising, self.scales, -self.scales)  # what each sign is worth from its threshold on
        middle = self.middle + float(ends[:start].sum() - ends[end:].sum())
        few = {key: getattr(self, key)[start:end] for key in ("thresholds", "rising", "scales")}
        return replace(self, middle=middle, **few)

    def _all(self, rising: bool) -> Thermometer:
        scales = np.where(self.rising == rising, 1, -1) * self.scales
        return replace(self, rising=np.full_like(self.rising, rising), scales=scales)

    def signs(self, values: Array) -> Array:
        """bool [..., k · channels] of values of x [..., channels]: where the signs are -1, one after the other."""
        reached = [values >= threshold for threshold in self.thresholds]
        return np.concatenate([r != rises for r, rises in zip(reached, self.rising, strict=True)], axis=-1)


def find_thermometer(graph: Graph, tensor: Tensor) -> Thermometer | None:
    """What a float tensor of few, evenly spaced levels is made of; None for one of other values.

    A level that is one number alone, as that of SIGN at zero, is not worth a sign.
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
    """Levels that ops move or pool, and take no others; the first of the ops reads those of the thermometer."""

    thermometer: Thermometer
    ops: tuple[Op, ...]


def find_levels(graph: Graph, tensor: Tensor) -> MovedLevels | None:
    """The few levels that a tensor takes, and what moves them on their way to it."""
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
