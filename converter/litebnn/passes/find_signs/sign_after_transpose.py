"""TRANSPOSE of an unpacked sign -> sign of a TRANSPOSE.

A sign is packed along its last axis, so the axis has to be the channels before it is packed.
"""

from __future__ import annotations

from litebnn.graph import Graph, Op
from litebnn.rewriting.build import transpose_before_sign
from litebnn.rewriting.each import each
from litebnn.rewriting.notes import Notes


@each("TRANSPOSE")
def sign_after_transpose(graph: Graph, op: Op, notes: Notes) -> bool:
    return transpose_before_sign(graph, op)
