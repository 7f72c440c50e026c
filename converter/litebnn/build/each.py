"""A decorator for rules that rewrite one op at a time."""

from __future__ import annotations

import functools
from collections.abc import Callable

from litebnn.build.notes import Notes
from litebnn.graph import Graph, Op


def each(*names: str) -> Callable[[Callable[[Graph, Op, Notes], bool]], Callable[[Graph, Notes], bool]]:
    """Makes a rule from a function that rewrites one op and returns True if it did.

    Args:
        names: the kinds of ops to call it for, in order of execution; all kinds if none is named.
    """

    def rule_of(rewrite: Callable[[Graph, Op, Notes], bool]) -> Callable[[Graph, Notes], bool]:
        @functools.wraps(rewrite)
        def rewrite_each(graph: Graph, notes: Notes) -> bool:
            changed = False
            for op in list(graph.ops):
                if (not names or op.name in names) and graph.holds(op) and rewrite(graph, op, notes):
                    graph.reconsider(op)
                    changed = True
            return changed

        return rewrite_each

    return rule_of
