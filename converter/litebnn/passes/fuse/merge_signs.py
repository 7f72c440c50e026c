"""LceQuantize, LceDequantize and TRANSPOSE ops of the same tensor become one, what packs an unpacked sign again none.

Two signs of one tensor, each with a TRANSPOSE behind it, are signs of two TRANSPOSEs once these have moved in front.
"""

from __future__ import annotations

from litebnn.contract import LCE_DEQUANTIZE, LCE_QUANTIZE
from litebnn.graph import Graph, Op, Tensor
from litebnn.rewriting.match import bits_of, transpose_order
from litebnn.rewriting.notes import Notes


def merge_signs(graph: Graph, notes: Notes) -> bool:
    changed = False
    first: dict[tuple[str, Tensor, str, tuple[int, ...]], Op] = {}
    for op in list(graph.ops):
        order = _order(op)
        if order is None:
            continue
        bits = bits_of(graph, op.input(0)) if op.name == LCE_QUANTIZE and op.input(0).type == "FLOAT32" else None
        same = bits or first.setdefault((op.name, op.input(0), op.output.type, order), op).output
        if same is not op.output and not graph.is_output(op.output) and op.output.quantization is None:
            graph.redirect(op.output, same)
            graph.remove(op)
            changed = True
    return changed


def _order(op: Op) -> tuple[int, ...] | None:
    """In which order an op has its input's axes, () where as they are; None of an op that is not merged."""
    if op.name == "TRANSPOSE":
        order = transpose_order(op)
        return None if order is None else tuple(order.tolist())
    return () if op.name in (LCE_QUANTIZE, LCE_DEQUANTIZE) else None
