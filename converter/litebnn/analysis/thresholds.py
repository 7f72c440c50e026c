"""Represents the thresholds of signs while the converter runs.

THRESHOLD is an op that exists only in the converter's graph. It packs +1 where x is at least a threshold, or below it
for a falling sign. In the end, a layer absorbs the THRESHOLD, or a rule replaces it by a difference and an LceQuantize.
No file has a THRESHOLD.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TypeAlias

import numpy as np

from litebnn.analysis.affine import AFFINE, affine_of, next_level, normal_level, per_channel
from litebnn.analysis.match import SIGNS, fused_activation
from litebnn.contract import LCE_QUANTIZE
from litebnn.graph import Array, Op, Tensor, derived, facts


@dataclass(frozen=True, eq=False)
class Threshold:
    """A Threshold says where a sign is +1: where x >= `level`. In channels in which `falls` is true, the sign is +1
    where x < `level`.
    """

    # The field `level` is float32 [1] or [channels]; an infinity means a constant sign.
    level: Array = field(default_factory=lambda: np.zeros(1, np.float32))
    falls: Array = field(default_factory=lambda: np.zeros(1, np.bool_))  # bool [1] or [channels]
    # The name for a tensor with the difference of x and `level`. A rule may later replace the threshold by the sign of
    # this difference.
    name: str = ""
    # The name for the constant that is subtracted from x, or added to x, to compute the difference of x and `level`.
    number: str = ""
    # True if a SUB computes the difference of x and `level`, False if an ADD of the negated `level` computes it.
    subtracts: bool = False
    # True if the source model rounds between x and the comparison, so that the threshold is not exact. A rule may then
    # fold the threshold into a bias, which rounds it once more.
    is_rounded: bool = False

    @property
    def is_plain(self) -> bool:
        """True if an LceQuantize alone computes the sign, without an op before it that subtracts a threshold."""
        return not np.any(self.falls) and not np.any(self.level)

    @property
    def key(self) -> tuple[bytes, ...]:
        """Returns a key made of `level` (the numbers with which x is compared) and `falls` (the directions of the
        comparisons). Thresholds with equal keys give the same sign for every x.
        """
        return () if self.is_plain else (self.level.tobytes(), self.falls.tobytes())

    @property
    def rising(self) -> Threshold:
        """Returns a threshold with the same `level`, whose sign is +1 at and above `level` in all channels. In channels
        in which `falls` was true (+1 below `level`), the caller must negate the sign."""
        return replace(self, falls=np.zeros(1, np.bool_))

    def of_channels(self, channels: slice | Array, suffix: str) -> Threshold:
        """Returns the threshold for a selection of the sign's channels. The names for its tensors end in `suffix`."""
        level, falls = (each if each.size == 1 else each[channels] for each in (self.level, self.falls))
        name = derived(self.name, suffix)
        return replace(self, level=level, falls=falls, name=name, number=derived(name, "/constant"))

    @property
    def is_uniform(self) -> bool:
        """True if all channels have the same threshold."""
        return max(self.level.size, self.falls.size) == 1

    def fits(self, before: Tensor, after: Tensor) -> bool:
        """True if this threshold of the tensor `before` also applies to `after`, the output of an op that only moves
        elements."""
        return self.is_uniform or before.channels == after.channels


def threshold_of(op: Op | None) -> Threshold | None:
    """Returns the threshold by which an op packs a sign; None for other ops."""
    if op is None or op.name not in SIGNS:
        return None
    return Threshold() if op.name == LCE_QUANTIZE else getattr(op.options, "threshold", None)


def upstream(op: Op, x: Tensor, level: Array) -> tuple[Array, Array, Array] | None:
    """Returns the threshold for an op's input x that is equivalent to the threshold `level` for the op's output.

    Returns:
        The threshold for x and two arrays of bools, as the function `crossing` returns them. None if the op has no
        known inverse.
    """
    if fused_activation(op) != 0 or op.output.dims != x.dims or not x.type == op.output.type == "FLOAT32":
        return None
    found = _INVERSES.get(op.name, _keeping)(op, x, level)
    if found is None or not all(np.all(np.isfinite(numbers)) for numbers in found):
        return None
    return crossing(*found, level)


def crossing(scale: Array, shift: Array, level: Array) -> tuple[Array, Array, Array]:
    """Returns the threshold for x at which scale · x + shift reaches the threshold `level`. The threshold for x is the
    float32 nearest to the exact number, or the next float32 above.

    Returns:
        The thresholds for x, float32 [n], and two arrays bool [n]. The first array is true where `level` is reached
        below the threshold for x, and false where `level` is reached at this threshold and above. The second array is
        true where float32 computes scale · x + shift without rounding, for the x nearest to the exact number.
    """
    with np.errstate(all="ignore"):
        nearest = normal_level(((level - shift) / scale).astype(np.float32), up=True)
        product = nearest * scale
        reached = product + shift
        is_exact = (product.astype(np.float32) == product) & (reached.astype(np.float32) == reached)
    falls = scale < 0
    is_next = np.isfinite(nearest) & ((is_exact & (reached < level)) != falls)
    first = np.where(is_next, next_level(nearest, up=True), nearest)
    always = np.where(shift >= level, -np.inf, np.inf)
    return np.where(scale == 0, always, first).astype(np.float32), falls, is_exact


_Line: TypeAlias = "tuple[Array, Array]"
_ONE = np.ones(1), np.zeros(1)


def _sloped(op: Op, x: Tensor, level: Array) -> _Line | None:
    """Describes a LEAKY_RELU or PRELU near a threshold of its output as x · scale + shift. For a negative threshold,
    the scale is the op's slope, otherwise it is 1.
    """
    leaky = np.full(1, getattr(op.options, "alpha", 0.0))
    slopes = leaky if op.name == "LEAKY_RELU" else per_channel(op.input(1), x.channels)
    if slopes is None or np.any(slopes <= 0):
        return None
    return np.where(level < 0, slopes, 1.0).astype(np.float64), np.zeros(1)


def _limited(op: Op, x: Tensor, level: Array) -> _Line | None:
    """Describes a MINIMUM or MAXIMUM of x and a number, or a number for each channel, as x itself. Returns None if the
    number changes which outputs reach the threshold.
    """
    limit = per_channel(next((tensor for tensor in op.inputs if tensor is not x), None), x.channels)
    is_free = limit is not None and np.all(level <= limit if op.name == "MINIMUM" else level > limit)
    return _ONE if is_free else None


def _keeping(op: Op, x: Tensor, level: Array) -> _Line | None:
    """Describes an op as x · 1 + 0 if its output reaches the threshold `level` exactly where its input x does. Returns
    None for other ops. A clamp does not change a threshold between its limits. An op that keeps the signs of values
    does not change the threshold 0.
    """
    limits = facts(op).clamp_limits
    if limits is None:
        return _ONE if facts(op).keeps_signs and not np.any(level) else None
    return _ONE if encloses(limits, level) else None


def encloses(limits: tuple[float, float], level: Array) -> bool:
    """True if the limits of a clamp enclose a threshold. The clamp then does not change which values reach the
    threshold.
    """
    low, high = limits
    return bool(np.all((low < level) & (level <= high)))


# For each kind of op, a function that describes the op near a threshold as x · scale + shift, with float64 numbers. It
# returns None if this is impossible.
_INVERSES: dict[str, Callable[[Op, Tensor, Array], _Line | None]] = {
    **dict.fromkeys(AFFINE, lambda op, x, level: affine_of(op, x.channels, left=op.inputs[0] is x)),
    **dict.fromkeys(("LEAKY_RELU", "PRELU"), _sloped),
    **dict.fromkeys(("MAXIMUM", "MINIMUM"), _limited),
}
