"""The arena: one static block of memory for all tensors. The export plans the offset of each tensor in it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

# The alignment of buffers in bytes, which the widest loads of the kernels need.
ALIGNMENT = 16


@dataclass(frozen=True)
class Buffer:
    """A buffer of a tensor that is in use from step `first` to step `last` of the network, both included."""

    bytes: int
    first: int
    last: int


def plan(buffers: Sequence[Buffer]) -> tuple[list[int], int]:
    """Plans the offset of each buffer, and the size of the arena. Large buffers are placed first. Each buffer gets the
    lowest gap between buffers that are in use at the same time.

    >>> plan([Buffer(16, 0, 1), Buffer(32, 1, 2), Buffer(16, 2, 3)])
    ([32, 0, 32], 48)
    """
    order = sorted(range(len(buffers)), key=lambda index: (-buffers[index].bytes, buffers[index].first))
    offsets = [0] * len(buffers)
    placed: list[int] = []
    for index in order:
        busy = sorted(
            (offsets[other], buffers[other].bytes) for other in placed if _overlap(buffers[index], buffers[other])
        )
        offsets[index] = _lowest_gap(buffers[index].bytes, busy)
        placed.append(index)
    ends = (offset + _aligned(buffer.bytes) for offset, buffer in zip(offsets, buffers, strict=True))
    return offsets, max(ends, default=0)


def least(buffers: Iterable[Buffer]) -> int:
    """The largest sum of the sizes of buffers that are in use at the same step. No plan can need less memory."""
    known = list(buffers)
    return max((sum(_aligned(b.bytes) for b in known if b.first <= at.first <= b.last) for at in known), default=0)


def _overlap(one: Buffer, other: Buffer) -> bool:
    return one.first <= other.last and other.first <= one.last


def _lowest_gap(size: int, busy: list[tuple[int, int]]) -> int:
    end = 0
    for offset, taken in busy:
        if offset - end >= _aligned(size):
            break
        end = max(end, offset + _aligned(taken))
    return end


def _aligned(size: int) -> int:
    return -(-size // ALIGNMENT) * ALIGNMENT
