"""TRANSPOSE of an unpacked sign -> sign of a TRANSPOSE.

A sign is packed along its last axis, so the axis has to be the channels before it is packed.
"""

from __future__ import annotations

from litebnn.contract import LCE_DEQUANTIZE
from litebnn.graph import Graph, Op
from litebnn.rewriting.build import custom_op, derived, like, pack_signs
from litebnn.rewriting.each import each
from litebnn.rewriting.match import signs_behind, transpose_order
from litebnn.rewriting.notes import Notes


@each("TRANSPOSE")
def sign_after_transpose(graph: Graph, op: Op, notes: Notes) -> bool:
    source = signs_behind(graph, op)
    if source is None or transpose_order(op) is None or op.output.channels < 1:
        return False
    turned = like(op.output, derived(op.output.name, "/turned"), type=source.type)
    turned.quantization = source.quantization
    graph.insert(Op(op.code, [source, op.inputs[1]], [turned], op.options), before=op)
    packed = pack_signs(graph, turned, derived(op.output.name, "/bits"), before=op)
    graph.replace(op, custom_op(LCE_DEQUANTIZE, [packed], op.output))
    return True
