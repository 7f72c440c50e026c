"""MAX_POOL_2D of an unpacked sign, or of one that is padded in float, -> LceBMaxPool2d of its bits."""

from __future__ import annotations

from litebnn.analysis.match import bits_of
from litebnn.build.each import each
from litebnn.build.notes import Notes
from litebnn.build.ops import can_pool_bits, custom_op, packed_like, pool_of_bits
from litebnn.build.signs import bits_of_signs, holds_signs
from litebnn.contract import LCE_DEQUANTIZE
from litebnn.graph import Graph, Op, derived


@each("MAX_POOL_2D")
def pool_bits(graph: Graph, op: Op, notes: Notes) -> bool:
    if not can_pool_bits(op):
        return False
    source, padding = op.input(0), graph.producer(op.input(0))
    bits = bits_of(graph, source)
    if bits is None and padding is not None and padding.name == "PADV2" and holds_signs(graph, source):
        bits = bits_of_signs(graph, source, before=op)
    if bits is None:
        return False
    pooled = packed_like(op.output, derived(op.output.name, "/bits"))
    graph.insert(pool_of_bits(op, bits, pooled), before=op)
    graph.replace(op, custom_op(LCE_DEQUANTIZE, [pooled], op.output))
    return True
