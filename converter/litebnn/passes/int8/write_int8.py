"""QUANTIZE(LceBconv2d) and QUANTIZE(LceDequantize) -> the op writes int8 itself, rounding in the same way."""

from __future__ import annotations

from litebnn.contract import BCONV_2D, DEQUANTIZE
from litebnn.graph import Graph
from litebnn.rewriting.int8 import int8_results, take_results
from litebnn.rewriting.notes import Notes


def write_int8(graph: Graph, notes: Notes) -> bool:
    changed = False
    for op in list(graph.ops):
        if op.name not in (BCONV_2D, DEQUANTIZE) or op.output.type != "FLOAT32":
            continue
        quantizers = int8_results(graph, op.output)
        if quantizers:
            take_results(graph, op, quantizers)
            notes.fused(op, "QUANTIZE")
            changed = True
    return changed
