"""Computes the time of each op, even if a delegate runs several ops as one node."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence

from litebnn.benchmark.stopwatch import WatchedNode

# The share of all runs that is averaged: the middle ones, when the runs are sorted by time. Their mean is close to the
# median, and excludes runs that another process slowed down.
_MIDDLE = 0.2


def middle_means(runs: Sequence[Sequence[float]]) -> list[float]:
    """Averages the time of each node over the middle share of the runs. The function sorts the runs by their total
    times.

    Args:
        runs: for each run, the time of each node.

    Example:
        >>> middle_means([[1.0, 1.0], [1.0, 2.0], [1.0, 2.0], [9.0, 9.0]])
        [1.0, 2.0]
    """
    ordered = sorted(runs, key=sum)
    left_out = int(len(ordered) * (1 - _MIDDLE) / 2)
    return [statistics.fmean(column) for column in zip(*ordered[left_out : len(ordered) - left_out], strict=True)]


def times_of_ops(
    nodes: Mapping[WatchedNode, float], alone: Mapping[WatchedNode, float]
) -> dict[tuple[int, ...], float]:
    """Divides the time of a node among its ops, in proportion to the time that each op takes in a node of its own.

    `nodes` has the time of each node in the fastest configuration. `alone` has the time of each op in a node of its
    own; it is empty if the runtime cannot run the ops separately.

    Returns:
        The time by op. Ops that cannot run separately share one entry.

    Example:
        >>> nodes = {WatchedNode((0, 1), "LitebnnDelegate"): 8.0, WatchedNode((2,), ""): 1.0}
        >>> times_of_ops(nodes, {WatchedNode((0,), "LitebnnDelegate"): 9.0, WatchedNode((1,), "LitebnnDelegate"): 3.0})
        {(0,): 6.0, (1,): 2.0, (2,): 1.0}
    """
    times: dict[tuple[int, ...], float] = {}
    for node, seconds in nodes.items():
        parts = {one.ops: time for one, time in alone.items() if set(one.ops) <= set(node.ops)}
        total = sum(parts.values())
        if total and {op for ops in parts for op in ops} == set(node.ops):
            times |= {ops: seconds * time / total for ops, time in sorted(parts.items())}
        else:
            times[node.ops] = seconds
    return times
