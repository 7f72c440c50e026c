"""Quantized values next to binary ops: LceQuantize reads int8, LceBconv2d and LceDequantize write it."""

from __future__ import annotations

from litebnn.contract import BCONV_2D, DEQUANTIZE, QUANTIZE
from litebnn.flatbuffer import Graph
from litebnn.passes.int8_common import int8_results, int8_source, take_results
from litebnn.passes.notes import Notes


def read_int8_signs(graph: Graph, notes: Notes) -> bool:
    """LceQuantize(DEQUANTIZE(x)) -> LceQuantize(x): x < zero point is what the sign asks."""
    changed = False
    for op in graph.ops:
        source = int8_source(graph, op.input(0)) if op.name == QUANTIZE else None
        if source is not None:
            graph.set_input(op, 0, source)
            changed = True
    return changed


def write_int8(graph: Graph, notes: Notes) -> bool:
    """QUANTIZE(LceBconv2d) and QUANTIZE(LceDequantize) -> the op writes int8 itself, rounding in the same way."""
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
