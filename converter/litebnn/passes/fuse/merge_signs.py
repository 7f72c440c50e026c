"""LceQuantize and LceDequantize ops of the same tensor become one; what packs an unpacked sign again becomes none."""

from __future__ import annotations

from litebnn.contract import LCE_DEQUANTIZE, LCE_QUANTIZE
from litebnn.graph import Graph, Op, Tensor
from litebnn.rewriting.match import bits_of
from litebnn.rewriting.notes import Notes

_MERGED_OPS = (LCE_QUANTIZE, LCE_DEQUANTIZE)


def merge_signs(graph: Graph, notes: Notes) -> bool:
    changed = False
    first: dict[tuple[str, Tensor, str], Op] = {}
    for op in list(graph.ops):
        if op.name not in _MERGED_OPS:
            continue
        bits = bits_of(graph, op.input(0)) if op.name == LCE_QUANTIZE and op.input(0).type == "FLOAT32" else None
        same = bits or first.setdefault((op.name, op.input(0), op.output.type), op).output
        if same is not op.output and not graph.is_output(op.output) and op.output.quantization is None:
            graph.redirect(op.output, same)
            graph.remove(op)
            changed = True
    return changed
