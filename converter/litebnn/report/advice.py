"""What to change in a model so that its binary layers run better, and what it costs to leave it.

The rules are explained in docs/rules-for-models.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

from litebnn.contract import BITS_PER_WORD
from litebnn.rewriting.notes import Layer

_CHANNEL_TILE = 8  # output channels that the kernels compute together, at least
_DOT_TILE = 128  # bits that a vector instruction works on
_WORTH_SAYING = 0.10  # a waste below this share is not worth changing a model for


def _share(used: int, multiple: int) -> float:
    """The share of work that is padding when `used` is rounded up to a multiple."""
    return 1 - used / (-(-used // multiple) * multiple)


def _channels_in(layer: Layer) -> Iterator[str]:
    channels = layer.filter_shape[-1]
    if channels % BITS_PER_WORD:
        yield (
            f"{channels} input channels: make it a multiple of {BITS_PER_WORD}; "
            f"{_share(channels, BITS_PER_WORD):.0%} of its bits are padding"
        )


def _channels_out(layer: Layer) -> Iterator[str]:
    channels = layer.filter_shape[0]
    if channels % _CHANNEL_TILE:
        yield (
            f"{channels} output channels: make it a multiple of {_CHANNEL_TILE}; "
            f"{_share(channels, _CHANNEL_TILE):.0%} of its work is thrown away"
        )


def _dot_length(layer: Layer) -> Iterator[str]:
    bits = math.prod(layer.filter_shape[1:])
    waste = _share(bits, _DOT_TILE)
    if waste > _WORTH_SAYING:
        yield (
            f"filter area × channels is {bits}: bring it near a multiple of {_DOT_TILE}; "
            f"{waste:.0%} of each vector instruction is idle"
        )


def _same_zero(layer: Layer) -> Iterator[str]:
    if not layer.padding.endswith("-zero") or len(layer.filter_shape) != 4 or len(layer.output_shape) != 4:
        return
    if layer.kind == "transposed conv":
        return  # its edges come of its own definition
    height, width = layer.output_shape[1:3]
    if height < 1 or width < 1:
        return
    rows, columns = (min(taps - 1, size) for taps, size in zip(layer.filter_shape[1:3], (height, width), strict=True))
    edge = 1 - (height - rows) * (width - columns) / (height * width)
    if edge > 0:
        yield (
            f"{layer.padding} padding: use pad_values=1 (same-one); {edge:.0%} of its outputs lie at the edge and need "
            "a correction for the taps that are zero"
        )


def _unfused(layer: Layer) -> Iterator[str]:
    for reason in layer.reasons:
        moved = 8 * math.prod(abs(d) for d in layer.output_shape)
        cost = f"; as it is, {moved:,} bytes go through memory once more" if "cannot be fused" in reason else ""
        yield reason + cost


_RULES: tuple[Callable[[Layer], Iterator[str]], ...] = (
    _channels_in,
    _channels_out,
    _dot_length,
    _same_zero,
    _unfused,
)


def advise(layer: Layer) -> list[str]:
    """One line for each thing to change in a layer; nothing for a layer that is meant to be float.

    Args:
        layer: a row of the report.
    """
    if not layer.binary:
        return []
    return [line for rule in _RULES for line in rule(layer)]
