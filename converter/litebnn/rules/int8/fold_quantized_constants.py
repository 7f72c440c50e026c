"""A QUANTIZE of a float constant becomes an int8 constant, and a TRANSPOSE of an int8 constant a transposed
constant."""

from __future__ import annotations

import numpy as np

from litebnn.analysis.match import floats, transpose_order
from litebnn.analysis.quantization import parameters, undequantized
from litebnn.graph import Graph, Op, constant, derived
from litebnn.rules.build.int8 import dequantize_op, int8_constant
from litebnn.rules.build.notes import Notes, each


@each("QUANTIZE", "TRANSPOSE")
def fold_quantized_constants(graph: Graph, op: Op, notes: Notes) -> bool:
    return _quantize(graph, op) if op.name == "QUANTIZE" else _transpose(graph, op)


def _quantize(graph: Graph, op: Op) -> bool:
    if op.output.type != "INT8" or graph.is_output(op.output):
        return False
    values, q = floats(op.input(0)), op.output.quantization
    if values is None or q is None or not np.all(q.scale > 0):
        return False
    if not np.all(np.isfinite(values)) or (q.scale.size > 1 and np.any(q.zero_point)):
        return False
    folded = int8_constant(op.output.name, values, q.scale, int(q.zero_point[0]), q.axis)
    graph.redirect(op.output, folded)
    graph.remove(op)
    return True


def _transpose(graph: Graph, op: Op) -> bool:
    """Folds the TRANSPOSE of a dequantized constant. Quantization-aware training leaves such ops for the weights of
    a dense layer.
    """
    source, order = undequantized(graph, op.input(0)), transpose_order(op)
    levels, q = source.array, source.quantization
    if source is op.input(0) or order is None or levels is None or levels.dtype != np.int8 or q is None:
        return False
    if order.size != levels.ndim:
        return False
    axes = order.tolist()
    grid = parameters(q.scale, q.zero_point, axes.index(q.axis) if q.scale.size > 1 else 0)
    turned = constant(derived(op.output.name, "/int8"), levels.transpose(axes), grid)
    graph.replace(op, dequantize_op(turned, op.output))
    return True
