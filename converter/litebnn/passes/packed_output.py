"""LceBconv2d whose float output is only ever quantized -> LceBconv2d that writes bits."""

from __future__ import annotations

import numpy as np

from litebnn.contract import QUANTIZE, Activation, Padding, PadValues, output_thresholds
from litebnn.flatbuffer import Array, Graph, Op, Tensor, constant
from litebnn.passes.common import bconv_options, channel_values, channels_per_group, derived, dot_max, is_float_bconv
from litebnn.passes.notes import Notes
from litebnn.passes.post_activation import negate_channels_out


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


def can_pack(op: Op, notes: Notes) -> bool:
    """Whether thresholds can stand for the signs of this op's outputs."""
    options = bconv_options(op)
    zero_padded = options.padding == Padding.SAME and options.pad_values == PadValues.ZERO
    if zero_padded and channels_per_group(op) % 2:
        notes.left_alone(op, "same-zero padding with an odd number of channels cannot write bits: use same-one padding")
        return False
    return bool(np.all(np.isfinite([channel_values(op, 2, 1.0), channel_values(op, 3, 0.0)])))


def write_bits(
    graph: Graph, op: Op, bits: Tensor, multiplier: Array, bias: Array, complement: Array | None = None
) -> None:
    """Makes `op` write to `bits` the signs of its clamped dot product · multiplier + bias."""
    activation = Activation(bconv_options(op).fused_activation_function)
    thresholds, flip = output_thresholds(multiplier, bias, dot_max(op), activation, complement)
    negate_channels_out(graph, op, flip)
    graph.set_input(op, 2, None)
    graph.set_input(op, 3, None)
    graph.set_input(op, 4, constant(derived(op.input(1).name, "/threshold"), thresholds))
    graph.set_output(op, bits)
