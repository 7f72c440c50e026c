"""QUANTIZE of a float constant -> an int8 constant."""

from __future__ import annotations

import numpy as np

from litebnn.graph import Graph, Op
from litebnn.rewriting.each import each
from litebnn.rewriting.int8 import int8_constant
from litebnn.rewriting.match import floats
from litebnn.rewriting.notes import Notes


@each("QUANTIZE")
def fold_quantized_constants(graph: Graph, op: Op, notes: Notes) -> bool:
    if op.output.type != "INT8" or graph.is_output(op.output):
        return False
    values, q = floats(op.input(0)), op.output.quantization
    if values is None or q is None:
        return False
    if not np.all(np.isfinite(values)) or (q.scale.size > 1 and np.any(q.zero_point)):
        return False
    folded = int8_constant(op.output.name, values, q.scale, int(q.zero_point[0]), q.axis)
    graph.redirect(op.output, folded)
    graph.remove(op)
    return True
