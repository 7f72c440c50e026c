"""A reshape of an unpacked sign -> the same reshape of its bits, or the sign of a reshape where words do not fit.

A TRANSPOSE of one -> the sign of the TRANSPOSE: a sign is packed along its last axis, so the axis has to be the
channels before the sign is read.
"""

from __future__ import annotations

from litebnn.contract import LCE_DEQUANTIZE
from litebnn.graph import Graph, Op, Tensor, builtin_op, facts
from litebnn.rewriting.build import custom_op, derived, like, pack_signs, packed_like
from litebnn.rewriting.each import each
from litebnn.rewriting.match import bits_of, signs_behind, transpose_order
from litebnn.rewriting.notes import Notes
from litebnn.rewriting.reshapes import is_describable, keeps_words, reshape_op


@each()
def reshape_bits(graph: Graph, op: Op, notes: Notes) -> bool:
    # In one pass, so that a sign moves behind all the reshapes and TRANSPOSEs that follow each other in one round.
    rearranged = _transposed(graph, op) if op.name == "TRANSPOSE" else _reshaped(graph, op)
    if rearranged is None:
        return False
    graph.replace(op, custom_op(LCE_DEQUANTIZE, [rearranged], op.output))
    return True


def _transposed(graph: Graph, op: Op) -> Tensor | None:
    """The bits of the transposed sign, None where they cannot be had."""
    source = signs_behind(graph, op)
    if source is None or transpose_order(op) is None or op.output.channels < 1:
        return None
    turned = like(op.output, derived(op.output.name, "/turned"), type=source.type)
    turned.quantization = source.quantization
    graph.insert(Op(op.code, [source, op.inputs[1]], [turned], op.options), before=op)
    return pack_signs(graph, turned, derived(op.output.name, "/bits"), before=op)


def _reshaped(graph: Graph, op: Op) -> Tensor | None:
    """The bits of the reshaped sign, None where they cannot be had."""
    bits = bits_of(graph, op.input(0)) if facts(op).reshapes else None
    if bits is None:
        return None
    name = derived(op.output.name, "/bits")
    if keeps_words(op):
        reshaped = packed_like(op.output, name)
        graph.insert(reshape_op(bits, reshaped), before=op)
        return reshaped
    if op.name == "EXPAND_DIMS" and op.output.channels == op.input(0).channels > 0:  # more than one size is not known
        reshaped = packed_like(op.output, name)
        graph.insert(builtin_op("EXPAND_DIMS", [bits, op.inputs[1]], reshaped), before=op)
        return reshaped
    source = signs_behind(graph, op)
    if source is None or op.output.channels < 1 or not is_describable(op.output):
        return None
    unsigned = like(op.output, derived(op.output.name, "/reshaped"), type=source.type)
    unsigned.quantization = source.quantization
    graph.insert(reshape_op(source, unsigned), before=op)
    return pack_signs(graph, unsigned, name, before=op)
