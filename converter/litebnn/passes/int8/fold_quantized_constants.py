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
        if values is None or values.dtype != np.float32 or not op.output.is_quantized:
            continue
        if not np.all(np.isfinite(values)) or (len(q.scale) > 1 and values.shape[q.quantizedDimension] != len(q.scale)):
            continue
        zero = 0 if q.zeroPoint is None or len(q.zeroPoint) == 0 else q.zeroPoint
        if np.size(zero) > 1:
            if np.any(zero != 0):
                continue
            zero = 0
        folded = int8_constant(op.output.name, values, q.scale, int(np.reshape(zero, -1)[0]), q.quantizedDimension)
        graph.redirect(op.output, folded)
        graph.remove(op)
        changed = True
    return changed
