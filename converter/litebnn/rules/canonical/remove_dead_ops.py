"""Ops whose results nobody reads are removed."""

from __future__ import annotations

from litebnn.analysis.match import THRESHOLD
from litebnn.contract import CUSTOM_OPS
from litebnn.graph import Graph, Op, facts
from litebnn.rules.build.notes import Notes


def _is_pure(op: Op) -> bool:
    reads_state = any(tensor is not None and tensor.is_variable for tensor in op.inputs)
    return not reads_state and (op.name in (*CUSTOM_OPS, THRESHOLD) or not facts(op).effects)


def remove_dead_ops(graph: Graph, notes: Notes) -> bool:
    changed = False
    for op in reversed(list(graph.ops)):
        if op.outputs and _is_pure(op) and not any(map(graph.is_read, op.outputs)):
            notes.unread(op)
            graph.remove(op)
            changed = True
    return changed
