"""Max pooling between layers happens on bits: the sign of a maximum is the maximum of signs, with the same threshold.

The pooled layer absorbs the threshold. For channels that fall, the filters that read the bits are negated.
"""

from __future__ import annotations

import numpy as np

from litebnn.analysis.match import SIGNS, fused_activation
from litebnn.analysis.padding import constant_padding
from litebnn.analysis.thresholds import Threshold, crossing, threshold_of
from litebnn.analysis.weights import bias_values
from litebnn.build.bconv import can_pack, is_float_bconv
from litebnn.build.each import each
from litebnn.build.negated_channels import can_negate_channels, negate_channels
from litebnn.build.notes import Notes
from litebnn.build.ops import can_pool_bits, packed_like, pool_of_bits
from litebnn.build.padding import pad_packed
from litebnn.build.thresholds import sign_op
from litebnn.contract import BITS_PER_WORD
from litebnn.graph import Graph, Op, constant, derived, then

_NEGATIVE = (
    "the batch norm behind its max pooling has negative scales, and the next layer pads with ones: its output stays "
    "float"
)


@each(*SIGNS)
def sign_before_maxpool(graph: Graph, sign: Op, notes: Notes) -> bool:
    pool, threshold = graph.producer(sign.input(0)), threshold_of(sign)
    if pool is None or pool.name != "MAX_POOL_2D" or threshold is None or not can_pool_bits(pool):
        return False
    if graph.sole_consumer(pool.output) is None:
        return False
    pad = _padding_of(graph, pool)
    unpooled = pool.input(0) if pad is None else pad.input(0)
    source, bits = graph.producer(unpooled), packed_like(unpooled, derived(unpooled.name, "/signs"))
    if threshold.is_plain:
        bits.origin = then(unpooled, signs=unpooled.channels)
    else:
        if source is None or graph.sole_consumer(unpooled) is None:
            return False
        if not is_float_bconv(source):
            if source.name not in ("CONV_2D", "DEPTHWISE_CONV_2D"):
                return False
            if threshold.is_rounded:  # else sums with another bias could round what decides
                if not _shift_bias(graph, source, threshold):
                    return False
                threshold = Threshold()
            elif np.any(threshold.falls) or np.any(np.isinf(threshold.level)):
                return False
        elif not can_pack(source, notes):
            return False
        elif np.any(threshold.falls) and not can_negate_channels(graph, sign.output):
            return notes.left_alone(source, _NEGATIVE)
        else:
            notes.fused(source, "batch norm behind MAX_POOL_2D")
    if np.any(threshold.falls):
        negate_channels(graph, sign.output, np.broadcast_to(threshold.falls, unpooled.channels))
        threshold = threshold.rising
    graph.insert(sign_op(unpooled, bits, threshold), before=sign)
    padding = None if pad is None else constant_padding(pad)
    if padding is not None:
        bits = pad_packed(graph, bits, unpooled.channels, padding.amounts, -1, before=sign)
    graph.replace(sign, pool_of_bits(pool, bits, sign.output))
    for op in (pool, *([pad] if pad else [])):
        graph.remove(op)
    return True


def _padding_of(graph: Graph, pool: Op) -> Op | None:
    """The op that pads a pool's input with -inf; for bits the padding is -1.

    PyTorch's pools have explicit padding, which is seldom the same as SAME.
    """
    pad = graph.producer(pool.input(0))
    if pad is None or pad.name != "PADV2" or graph.sole_consumer(pad.output) is not pool:
        return None
    padding, channels = constant_padding(pad), pool.input(0).channels
    if padding is None or not padding.is_spatial or padding.value > np.finfo(np.float32).min:
        return None
    packs = channels < BITS_PER_WORD or channels % BITS_PER_WORD == 0
    return pad if packs and pad.output.type == "FLOAT32" else None


def _shift_bias(graph: Graph, source: Op, threshold: Threshold) -> bool:
    """Adds the sign's threshold to the bias of the float convolution before the pool."""
    if fused_activation(source) != 0 or np.any(threshold.falls):
        return False
    bias = bias_values(source.optional(2), source.output.channels) if len(source.inputs) > 2 else None
    if bias is None or source.output.type != "FLOAT32" or source.input(1).type != "FLOAT32":
        return False
    first, _, _ = crossing(np.ones(1), bias.astype(np.float64), threshold.level)
    shifted = np.float32(0) - first
    if not np.all(np.isfinite(shifted)):
        return False
    graph.set_input(source, 2, constant(derived(source.input(1).name, "/bias"), shifted))
    source.output.name, source.output.origin = derived(source.output.name, "/shifted"), None
    return True
