"""LceBconv2d whose float output is only ever read as signs -> LceBconv2d that writes bits."""

from __future__ import annotations

from litebnn.contract import LCE_BCONV_2D, LCE_QUANTIZE
from litebnn.graph import Graph, Op
from litebnn.rewriting.bconv import can_pack, is_float_bconv, multiplier_and_bias, write_bits
from litebnn.rewriting.each import each
from litebnn.rewriting.notes import Notes


@each(LCE_BCONV_2D)
def pack_outputs(graph: Graph, op: Op, notes: Notes) -> bool:
    if not is_float_bconv(op) or graph.is_output(op.output):
        return False
    consumers = graph.consumers(op.output)
    if not consumers or any(consumer.name != LCE_QUANTIZE for consumer in consumers):
        return False
    if not can_pack(op, notes):
        return False
    bits = consumers[0].output
    write_bits(graph, op, bits, *multiplier_and_bias(op))
    for consumer in consumers:
        graph.redirect(consumer.output, bits)
        graph.remove(consumer)
    notes.fused(op, "LceQuantize")
    return True
