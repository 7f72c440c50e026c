"""TRANSPOSE of a TRANSPOSE -> one, or none."""

from __future__ import annotations

from litebnn.graph import Graph, Op
from litebnn.rewriting.build import merge_transpose
from litebnn.rewriting.each import each
from litebnn.rewriting.notes import Notes


@each("TRANSPOSE")
def merge_transposes(graph: Graph, op: Op, notes: Notes) -> bool:
    return merge_transpose(graph, op)
