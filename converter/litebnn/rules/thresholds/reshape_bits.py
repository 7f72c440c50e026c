"""A reshape of an unpacked sign -> the same reshape of its bits, or the sign of a reshape if words do not fit.

A TRANSPOSE of an unpacked sign -> the sign of the TRANSPOSE. Signs are packed along the last axis, which must be the
channels when a layer reads them.
"""

from __future__ import annotations

from litebnn.analysis.match import bits_of, transpose_order
from litebnn.analysis.thresholds import Threshold, signs_behind
from litebnn.build.each import each
from litebnn.build.notes import Notes
from litebnn.build.ops import custom_op, packed_like
from litebnn.build.reshapes import is_describable, keeps_words, reshape_op
from litebnn.build.thresholds import difference, pack_signs
from litebnn.contract import LCE_DEQUANTIZE
from litebnn.graph import Graph, Op, Tensor, builtin_op, derived, facts, like


@each()
def reshape_bits(graph: Graph, op: Op, notes: Notes) -> bool:
    # One rule handles both, so that a sign moves across successive reshapes and TRANSPOSEs in one round.
    rearranged = _transposed(graph, op) if op.name == "TRANSPOSE" else _reshaped(graph, op)
    if rearranged is None:
        return False
    graph.replace(op, custom_op(LCE_DEQUANTIZE, [rearranged], op.output))
    return True


def _transposed(graph: Graph, op: Op) -> Tensor | None:
    """The bits of the transposed sign; None if that is impossible."""
    order = transpose_order(op)
    if order is None or op.output.channels < 1:
        return None
    found = _sign(graph, op, moves_channels=order[-1] != order.size - 1)
    if found is None:
        return None
    source, threshold = found
    turned = like(op.output, derived(op.output.name, "/turned"), type=source.type)
    turned.quantization = source.quantization
    graph.insert(Op(op.code, [source, op.inputs[1]], [turned], op.options), before=op)
    return pack_signs(graph, turned, derived(op.output.name, "/bits"), threshold, before=op)


def _reshaped(graph: Graph, op: Op) -> Tensor | None:
    """The bits of the reshaped sign; None if that is impossible."""
    bits = bits_of(graph, op.input(0)) if facts(op).reshapes else None
    if bits is None:
        return None
    name = derived(op.output.name, "/bits")
    if keeps_words(op):
        reshaped = packed_like(op.output, name)
        graph.insert(reshape_op(bits, reshaped), before=op)
        return reshaped
    if op.name == "EXPAND_DIMS" and op.output.channels == op.input(0).channels > 0:  # several sizes are unknown
        reshaped = packed_like(op.output, name)
        graph.insert(builtin_op("EXPAND_DIMS", [bits, op.inputs[1]], reshaped), before=op)
        return reshaped
    if op.output.channels < 1 or not is_describable(op.output):
        return None
    found = _sign(graph, op, moves_channels=op.output.channels != op.input(0).channels)
    if found is None:
        return None
    source, threshold = found
    unsigned = like(op.output, derived(op.output.name, "/reshaped"), type=source.type)
    unsigned.quantization = source.quantization
    graph.insert(reshape_op(source, unsigned), before=op)
    return pack_signs(graph, unsigned, name, threshold, before=op)


def _sign(graph: Graph, op: Op, *, moves_channels: bool) -> tuple[Tensor, Threshold] | None:
    """The tensor and threshold of the op's input sign; if channels move, a difference replaces their thresholds."""
    found = signs_behind(graph, op)
    if found is None or not moves_channels or found[1].is_uniform:
        return found
    return difference(graph, *found, before=op), Threshold()
