"""The time of each op, though delegates run several as one."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence

from litebnn.benchmark.stopwatch import WatchedNode

# Of the runs, ordered by their time, this share in the middle counts: their mean is near the median of all, and what
# another process has slowed down is not among them.
_MIDDLE = 0.2


def middle_means(runs: Sequence[Sequence[float]]) -> list[float]:
    """The mean time of each node, over the runs that were neither fast nor slow.

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
    """Shares the time of a node among the ops that it runs as one, in proportion to what each takes alone.

    Args:
        nodes: the time of each node as the model runs best.
        alone: that of each op in a node of its own; empty where the runtime cannot run them so.

    Returns:
        The time by op. Ops that only run together have one time.

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
