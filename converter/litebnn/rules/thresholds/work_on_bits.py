"""An op that moves, copies, pads or pools an unpacked sign becomes the same op on the sign's bits, followed by
LceDequantize.

Signs are packed along the last axis, which must be the channels when a layer reads them. If an op cannot work on packed
words, it is applied to the tensor before the sign is taken. Padded signs may also stay floats until a layer packs them.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from litebnn.analysis.layouts import copies_pixels, layouts_of
from litebnn.analysis.match import bits_of, transpose_order
from litebnn.analysis.padding import constant_padding, word_of_padding
from litebnn.analysis.thresholds import Threshold, threshold_of
from litebnn.contract import LCE_DEQUANTIZE
from litebnn.graph import Graph, Op, Tensor, builtin_op, derived, facts, like
from litebnn.rules.build.notes import Notes, each
from litebnn.rules.build.ops import (
    can_pool_bits,
    copy_of,
    custom_op,
    is_describable,
    keeps_words,
    packed_like,
    pool_of_bits,
    reshape_op,
)
from litebnn.rules.build.signs import bits_of_signs, difference, holds_signs, pack_signs, pad_with


@each()
def work_on_bits(graph: Graph, op: Op, notes: Notes) -> bool:
    # One rule handles all ops that can work on bits instead of signs, so that a sign can move across several ops in one
    # round.
    work = _WORKS.get(op.name, _reshaped if facts(op).reshapes else None)
    bits = None if work is None else work(graph, op)
    if bits is None:
        return False
    graph.replace(op, custom_op(LCE_DEQUANTIZE, [bits], op.output))
    return True


def _pooled(graph: Graph, op: Op) -> Tensor | None:
    """Inserts a max pool of bits in place of `op`, a max pool of signs, and returns its output. The signs may be padded
    by a PADV2. Returns None if the input has no bits, or if the pool cannot work on bits.
    """
    source = op.input(0)
    is_padded = graph.producer(source, "PADV2") is not None and holds_signs(graph, source)
    if not can_pool_bits(op) or (bits_of(graph, source) is None and not is_padded):
        return None
    bits = bits_of_signs(graph, source, before=op)
    pooled = packed_like(op.output, derived(op.output.name, "/bits"))
    return graph.insert(pool_of_bits(op, bits, pooled), before=op).output


def _padded(graph: Graph, op: Op) -> Tensor | None:
    """Returns the packed bits of the output of a pad of a sign with ±1. None if no constant word encodes the padding,
    as for 40 channels padded with -1.
    """
    bits, padding = bits_of(graph, op.input(0)), constant_padding(op)
    if bits is None or padding is None or abs(padding.value) != 1.0 or np.any(padding.amounts[-1]):
        return None
    channels = op.output.channels
    word = word_of_padding(channels, int(padding.value))
    if op.output.type != "FLOAT32" or channels != op.input(0).channels or word is None:
        return None
    return pad_with(graph, bits, padding.amounts, word, before=op)


def _gathered(graph: Graph, op: Op) -> Tensor | None:
    """Returns the packed bits of the output of a GATHER that copies elements with all their channels."""
    bits = bits_of(graph, op.input(0))
    # A layout after the GATHER moves before it first (`raise_layouts`), and before the sign.
    if bits is None or not copies_pixels(op) or any(map(layouts_of, graph.consumers(op.output))):
        return None
    copied = packed_like(op.output, derived(op.output.name, "/bits"))
    return graph.insert(Op(op.code, [bits, op.inputs[1]], [copied], op.options), before=op).output


def _transposed(graph: Graph, op: Op) -> Tensor | None:
    """Returns the packed bits of the output of a TRANSPOSE of a sign; None if they cannot be computed."""
    order = transpose_order(op)
    if order is None or op.output.channels < 1:
        return None
    found = _sign(graph, op, moves_channels=order[-1] != order.size - 1)
    if found is None:
        return None
    source, threshold = found
    turned = copy_of(graph, op, source, "/turned", before=op)
    return pack_signs(graph, turned, derived(op.output.name, "/bits"), threshold, before=op)


def _reshaped(graph: Graph, op: Op) -> Tensor | None:
    """Returns the packed bits of the output of a reshape of a sign; None if they cannot be computed."""
    bits, output, name = bits_of(graph, op.input(0)), op.output, derived(op.output.name, "/bits")
    if bits is None:
        return None
    if keeps_words(op):
        return graph.insert(reshape_op(bits, packed_like(output, name)), before=op).output
    if op.name == "EXPAND_DIMS" and output.channels == op.input(0).channels > 0:  # several sizes are unknown
        expanded = builtin_op("EXPAND_DIMS", [bits, op.inputs[1]], packed_like(output, name))
        return graph.insert(expanded, before=op).output
    if output.channels < 1 or not is_describable(output):
        return None
    found = _sign(graph, op, moves_channels=output.channels != op.input(0).channels)
    if found is None:
        return None
    source, threshold = found
    unsigned = like(source, derived(output.name, "/reshaped"), dims=output.dims)
    graph.insert(reshape_op(source, unsigned), before=op)
    return pack_signs(graph, unsigned, name, threshold, before=op)


def _sign(graph: Graph, op: Op, *, moves_channels: bool) -> tuple[Tensor, Threshold] | None:
    """Returns the tensor whose sign the op reads, and the sign's threshold.

    If the op moves channels whose thresholds differ, returns the tensor minus the thresholds, and the threshold 0.
    """
    packing = graph.producer(bits_of(graph, op.input(0)))
    threshold = threshold_of(packing)
    if packing is None or threshold is None:
        return None
    x = packing.input(0)
    if not moves_channels or threshold.is_uniform:
        return x, threshold
    return difference(graph, x, threshold, before=op), Threshold()


_WORKS: dict[str, Callable[[Graph, Op], Tensor | None]] = {
    "GATHER": _gathered,
    "MAX_POOL_2D": _pooled,
    "PADV2": _padded,
    "TRANSPOSE": _transposed,
}
