"""LceBconv2d whose float output is only ever quantized -> LceBconv2d that writes bits."""

from __future__ import annotations

from litebnn.contract import QUANTIZE
from litebnn.graph import Graph
from litebnn.rewriting.bconv import can_pack, channel_values, is_float_bconv, write_bits
from litebnn.rewriting.notes import Notes


def pack_outputs(graph: Graph, notes: Notes) -> bool:
    changed = False
    for op in list(graph.ops):
        if not is_float_bconv(op) or graph.is_output(op.output):
            continue
        consumers = graph.consumers(op.output)
        if not consumers or any(consumer.name != QUANTIZE for consumer in consumers):
            continue
        if not can_pack(op, notes):
            continue
        bits = consumers[0].output
        write_bits(graph, op, bits, channel_values(op, 2, 1.0), channel_values(op, 3, 0.0))
        for consumer in consumers:
            graph.redirect(consumer.output, bits)
            graph.remove(consumer)
        notes.fused(op, "LceQuantize")
        changed = True
    return changed
