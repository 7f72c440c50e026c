"""Equal LceQuantize, LceDequantize or TRANSPOSE ops that read the same tensor become one op. An op that packs an
unpacked sign is removed.

TRANSPOSEs of two signs of one tensor move before the signs. The two TRANSPOSEs then read the same tensor, so this rule
merges them too.
"""

from __future__ import annotations

from litebnn.analysis.match import bits_of, transpose_order
from litebnn.analysis.thresholds import threshold_of
from litebnn.contract import LCE_DEQUANTIZE, LCE_QUANTIZE
from litebnn.graph import Graph, Op, Tensor
from litebnn.rules.build.notes import Notes


def merge_signs(graph: Graph, notes: Notes) -> bool:
    changed = False
    first: dict[tuple[str, Tensor, str, object], Op] = {}
    for op in list(graph.ops):
        order, threshold = transpose_order(op) if op.name == "TRANSPOSE" else None, threshold_of(op)
        if order is None and threshold is None and op.name != LCE_DEQUANTIZE:
            continue
        key = tuple(order.tolist()) if order is not None else threshold.key if threshold is not None else ()
        bits = bits_of(graph, op.input(0)) if op.name == LCE_QUANTIZE and op.input(0).type == "FLOAT32" else None
        same = bits or first.setdefault((op.name, op.input(0), op.output.type, key), op).output
        if same is not op.output and op.output.quantization is None:
            changed |= graph.bypass(op, same)
    return changed
