"""Negation of channels of packed data, together with the filters that read them."""

from __future__ import annotations

import numpy as np

from litebnn.analysis.padding import same_padding
from litebnn.build.bconv import bconv_options, channels_per_group
from litebnn.contract import LCE_BCONV_2D, Padding, PadValues, pack_bits
from litebnn.graph import Array, Graph, Negated, Op, Tensor, constant, then


def can_negate_channels(graph: Graph, bits: Tensor) -> bool:
    """True if every consumer of `bits`, perhaps after reshapes, is an LceBconv2d that does not pad with +1."""
    consumers = graph.consumers(bits)
    return bool(consumers) and not graph.is_output(bits) and all(_can_absorb(graph, c, bits) for c in consumers)


def negate_channels(graph: Graph, bits: Tensor, negative: Array) -> None:
    """Negates the filters of all consumers of `bits` in the channels where `negative` (bool [C]) is true."""
    bits.name += "/negated"
    bits.origin = then(bits, Negated("".join("01"[is_negative] for is_negative in negative.tolist())))
    for consumer in dict.fromkeys(graph.consumers(bits)):
        if consumer.name == "RESHAPE":
            words, words_out = bits.dims[-1], consumer.output.dims[-1]
            negate_channels(graph, consumer.output, np.tile(negative, words_out // words))
        else:
            _absorb(graph, consumer, negative)


def _can_absorb(graph: Graph, op: Op, bits: Tensor) -> bool:
    if op.name == "RESHAPE":
        words, words_out = bits.dims[-1], op.output.dims[-1]
        return words > 0 and words_out > 0 and words_out % words == 0 and can_negate_channels(graph, op.output)
    return op.name == LCE_BCONV_2D and op.inputs[0] is bits and not _pads_with_ones(op)


def _pads_with_ones(op: Op) -> bool:
    o = bconv_options(op)
    if o.padding == Padding.VALID or o.pad_values == PadValues.ZERO:
        return False
    if o.padding is None:
        return True
    _, height, width, _ = op.input(1).shape
    for size, taps, stride, dilation in (
        (op.input(0).dims[1], height, o.stride_height, o.dilation_height_factor),
        (op.input(0).dims[2], width, o.stride_width, o.dilation_width_factor),
    ):
        if size < 0:
            return True
        _, output = same_padding(size, taps, stride, dilation)
        if (output - 1) * stride + (taps - 1) * dilation + 1 > size:
            return True
    return False


def _absorb(graph: Graph, op: Op, negative: Array) -> None:
    words = op.input(1).array
    assert words is not None
    channels = channels_per_group(op)
    masks = pack_bits(negative.reshape(-1, channels))  # one row for each group
    flipped = words ^ np.repeat(masks, words.shape[0] // masks.shape[0], axis=0)[:, None, None, :]
    graph.set_input(op, 1, constant(op.input(1).name, flipped))
