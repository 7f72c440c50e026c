"""LceQuantize and LceDequantize ops of the same tensor become one."""

from __future__ import annotations

from litebnn.contract import LCE_DEQUANTIZE, LCE_QUANTIZE
from litebnn.graph import Graph, Op, Tensor
from litebnn.rewriting.notes import Notes

_MERGED_OPS = (LCE_QUANTIZE, LCE_DEQUANTIZE)


def merge_signs(graph: Graph, notes: Notes) -> bool:
    changed = False
    first: dict[tuple[str, Tensor, str], Op] = {}
    for op in list(graph.ops):
        if op.name not in _MERGED_OPS:
            continue
        same = first.setdefault((op.name, op.input(0), op.output.type), op)
        if same is not op and not graph.is_output(op.output) and op.output.quantization is None:
            graph.redirect(op.output, same.output)
            graph.remove(op)
            changed = True
    return changed
