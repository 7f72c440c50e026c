"""MAX_POOL_2D of an unpacked sign -> LceBMaxPool2d of its bits."""

from __future__ import annotations

from litebnn.contract import DEQUANTIZE
from litebnn.graph import Graph
from litebnn.rewriting.build import custom_op, derived, like, packed_dims, pool_of_bits
from litebnn.rewriting.match import bits_of, fused_activation
from litebnn.rewriting.notes import Notes


def pool_bits(graph: Graph, notes: Notes) -> bool:
    changed = False
    for op in list(graph.ops):
        bits = bits_of(graph, op.input(0)) if op.name == "MAX_POOL_2D" else None
        if bits is None or fused_activation(op) != 0:
            continue
        pooled = like(op.output, derived(op.output.name, "/bits"), type="INT32", dims=packed_dims(op.output))
        graph.insert(pool_of_bits(op, bits, pooled), before=op)
        graph.replace(op, custom_op(DEQUANTIZE, [pooled], op.output))
        changed = True
    return changed
