"""An op that moves, pads or pools an unpacked sign -> the same of its bits, followed by LceDequantize.

Signs are packed along the last axis, which must be the channels when a layer reads them. If words do not fit, the op is
done to the tensor before its sign, or padded signs stay floats until a layer packs them.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from litebnn.analysis.match import bits_of, transpose_order
from litebnn.analysis.padding import constant_padding, word_of_padding
from litebnn.analysis.thresholds import Threshold, sign_of_input
from litebnn.build.notes import Notes, each
from litebnn.build.ops import (
    can_pool_bits,
    custom_op,
    is_describable,
    keeps_words,
    packed_like,
    pool_of_bits,
    reshape_op,
)
from litebnn.build.signs import bits_of_signs, difference, holds_signs, pack_signs, pad_with
from litebnn.contract import LCE_DEQUANTIZE
from litebnn.graph import Graph, Op, Tensor, builtin_op, derived, facts, like


@each()
def work_on_bits(graph: Graph, op: Op, notes: Notes) -> bool:
    # One rule handles all kinds of ops, so that a sign moves across several successive ops in one round.
    work = _WORKS.get(op.name, _reshaped if facts(op).reshapes else None)
    bits = None if work is None else work(graph, op)
    if bits is None:
        return False
    graph.replace(op, custom_op(LCE_DEQUANTIZE, [bits], op.output))
    return True


def _pooled(graph: Graph, op: Op) -> Tensor | None:
    """The pooled bits of a sign, or of one that is padded in float."""
    source, padding = op.input(0), graph.producer(op.input(0))
    bits = bits_of(graph, source) if can_pool_bits(op) else None
    if bits is None and padding is not None and padding.name == "PADV2" and can_pool_bits(op):
        bits = bits_of_signs(graph, source, before=op) if holds_signs(graph, source) else None
    if bits is None:
        return None
    pooled = packed_like(op.output, derived(op.output.name, "/bits"))
    return graph.insert(pool_of_bits(op, bits, pooled), before=op).output


def _padded(graph: Graph, op: Op) -> Tensor | None:
    """The bits, padded with ±1, unless no constant word encodes -1: over 32 channels that are not a multiple of 32."""
    bits, padding = bits_of(graph, op.input(0)), constant_padding(op)
    if bits is None or padding is None or abs(padding.value) != 1.0 or np.any(padding.amounts[-1]):
        return None
    channels = op.output.channels
    word = word_of_padding(channels, int(padding.value))
    if op.output.type != "FLOAT32" or channels != op.input(0).channels or word is None:
        return None
    return pad_with(graph, bits, padding.amounts, word, before=op)


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
    """The tensor and threshold of the op's input sign.

    If channels move and their thresholds differ, the tensor becomes a difference whose threshold is 0.
    """
    found = sign_of_input(graph, op)
    if found is None or not moves_channels or found[1].is_uniform:
        return found
    return difference(graph, *found, before=op), Threshold()


_WORKS: dict[str, Callable[[Graph, Op], Tensor | None]] = {
    "MAX_POOL_2D": _pooled,
    "PADV2": _padded,
    "TRANSPOSE": _transposed,
}
