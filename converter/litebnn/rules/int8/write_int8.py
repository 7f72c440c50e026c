"""QUANTIZE(LceBconv2d) and QUANTIZE(LceDequantize) -> the op writes int8 itself, with the same rounding."""

from __future__ import annotations

from litebnn.analysis.grids import int8_results
from litebnn.build.int8 import take_results
from litebnn.build.notes import Notes, each
from litebnn.contract import LCE_BCONV_2D, LCE_DEQUANTIZE
from litebnn.graph import Graph, Op


@each(LCE_BCONV_2D, LCE_DEQUANTIZE)
def write_int8(graph: Graph, op: Op, notes: Notes) -> bool:
    if op.output.type != "FLOAT32":
        return False
    quantizers = int8_results(graph, op.output)
    if not quantizers:
        return False
    take_results(graph, op, quantizers)
    notes.fused(op, "QUANTIZE")
    return True
