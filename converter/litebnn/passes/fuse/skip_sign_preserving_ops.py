"""What keeps the sign of every value means nothing to a sign that reads it: sign(tanh(x)) is sign(x)."""

from __future__ import annotations

import numpy as np

from litebnn.contract import QUANTIZE
from litebnn.graph import Graph, Op, facts
from litebnn.rewriting.match import uniform
from litebnn.rewriting.notes import Notes


def skip_sign_preserving_ops(graph: Graph, notes: Notes) -> bool:
    changed = False
    for op in graph.ops:
        source = graph.producer(op.input(0)) if op.name == QUANTIZE else None
        if source is None or not _keeps_signs(source) or source.input(0).dims != op.input(0).dims:
            continue
        if source.input(0).type == op.input(0).type == "FLOAT32":
            graph.set_input(op, 0, source.input(0))
            changed = True
    return changed


def _keeps_signs(op: Op) -> bool:
    if op.name == "LEAKY_RELU":
        return bool(getattr(op.options, "alpha", 0) > 0)
    if op.name == "PRELU":
        slopes = op.input(1).array
        return slopes is not None and bool(np.all(slopes > 0))
    if op.name in ("MINIMUM", "MAXIMUM"):  # as clamps: not below zero from above, nor above zero from below
        limit = uniform(op.input(1))
        return limit is not None and (limit > 0 if op.name == "MINIMUM" else limit < 0)
    return facts(op).keeps_signs
