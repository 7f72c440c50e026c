"""Equal LceQuantize, LceDequantize and TRANSPOSE ops of one tensor -> one op; packing an unpacked sign -> no op.

Two transposed signs of one tensor become signs of two equal TRANSPOSEs after these have moved before the signs.
"""

from __future__ import annotations

from litebnn.analysis.match import bits_of, transpose_order
from litebnn.analysis.thresholds import threshold_of
from litebnn.build.notes import Notes
from litebnn.contract import LCE_DEQUANTIZE, LCE_QUANTIZE
from litebnn.graph import Graph, Op, Tensor


def merge_signs(graph: Graph, notes: Notes) -> bool:
    changed = False
    first: dict[tuple[str, Tensor, str, object], Op] = {}
    for op in list(graph.ops):
        order = _order(op)
        if order is None:
            continue
        bits = bits_of(graph, op.input(0)) if op.name == LCE_QUANTIZE and op.input(0).type == "FLOAT32" else None
        same = bits or first.setdefault((op.name, op.input(0), op.output.type, order), op).output
        if same is not op.output and op.output.quantization is None:
            changed |= graph.bypass(op, same)
    return changed


def _order(op: Op) -> object | None:
    """The key for merging an op: a TRANSPOSE's order, or a sign's threshold; None for an op that is not merged."""
    if op.name == "TRANSPOSE":
        order = transpose_order(op)
        return None if order is None else tuple(order.tolist())
    threshold = threshold_of(op)
    return () if op.name == LCE_DEQUANTIZE else None if threshold is None else threshold.key
