"""QUANTIZE of a float constant -> an int8 constant."""

from __future__ import annotations

import numpy as np

from litebnn.graph import Graph
from litebnn.rewriting.int8 import int8_constant
from litebnn.rewriting.notes import Notes


def fold_quantized_constants(graph: Graph, notes: Notes) -> bool:
    changed = False
    for op in list(graph.ops):
        if op.name != "QUANTIZE" or op.output.type != "INT8" or graph.is_output(op.output):
            continue
        values, q = op.input(0).array, op.output.quantization
        if values is None or values.dtype != np.float32 or q is None:
            continue
        if not np.all(np.isfinite(values)) or (q.scale.size > 1 and np.any(q.zero_point)):
            continue
        folded = int8_constant(op.output.name, values, q.scale, int(q.zero_point[0]), q.axis)
        graph.redirect(op.output, folded)
        graph.remove(op)
        changed = True
    return changed
