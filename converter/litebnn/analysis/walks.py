"""Walks from a tensor to the ops that compute it.

All walks have the same limit on the number of ops. Lists of ops that a graph keeps as answers to a `Question` have it
too. Networks have a few dozen ops between a quantizer and its layer. A damaged file may have any number of them, and
without a limit each walk could take very long.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from litebnn.graph import Graph, Op, Tensor

MOST_OPS = 64


def ops_upstream(
    graph: Graph, tensor: Tensor, follows: Callable[[Op], Iterable[Tensor | None]], most: int = MOST_OPS
) -> list[Op] | None:
    """Returns the ops from which a tensor is computed, in order of execution; None if there are more than `most`.

    Args:
        follows: a function that returns the inputs of an op through which the walk goes on.
    """
    found: dict[Op, None] = {}
    opened: set[Op] = set()
    waiting = [graph.producer(tensor)]
    while waiting:
        op = waiting[-1]
        if op is None or op in opened:
            waiting.pop()
            if op is not None:
                found[op] = None
            continue
        opened.add(op)
        if len(opened) > most:
            return None
        producers = (graph.producer(source) for source in follows(op))
        waiting.extend(each for each in producers if each is not None and each not in opened)
    return list(found)
