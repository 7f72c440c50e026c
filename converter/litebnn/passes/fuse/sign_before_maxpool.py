"""Max pooling between layers happens on bits: sign(maxpool(x)) is maxpool(sign(x)).

A per-channel affine (batch norm) may stand between the pooling and the sign. A positive scale commutes with the
maximum; a negative one turns it into a minimum, -max(-sign(x)), whose outer negation goes into the filters that read
the bits.
"""

from __future__ import annotations

import numpy as np

from litebnn.contract import BITS_PER_WORD, LCE_QUANTIZE
from litebnn.graph import Graph, Op, Tensor, constant
from litebnn.rewriting.affine import AffineChain, affine_chain, is_lost, is_short, next_level
from litebnn.rewriting.bconv import can_pack, is_float_bconv, multiplier_and_bias, write_bits
from litebnn.rewriting.build import can_pool_bits, custom_op, derived, pack_signs, packed_like, pool_of_bits
from litebnn.rewriting.each import each
from litebnn.rewriting.match import fused_activation
from litebnn.rewriting.negated_channels import can_negate_channels, negate_channels
from litebnn.rewriting.notes import Notes
from litebnn.rewriting.padding import constant_padding, pad_packed
from litebnn.rewriting.weights import bias_values

_NEGATIVE = (
    "the batch norm behind its max pooling has negative scales, and the next layer pads with ones: its output stays "
    "float"
)


@each(LCE_QUANTIZE)
def sign_before_maxpool(graph: Graph, sign: Op, notes: Notes) -> bool:
    chain = affine_chain(graph, sign.input(0))
    pool = graph.producer(chain.source)
    if pool is None or pool.name != "MAX_POOL_2D" or graph.sole_consumer(pool.output) is None:
        return False
    if not can_pool_bits(pool):
        return False
    pad = _padding_of(graph, pool)
    unpooled = pool.input(0) if pad is None else pad.input(0)
    if not chain.ops:
        bits = pack_signs(graph, unpooled, derived(unpooled.name, "/signs"), before=sign)
    else:
        source = graph.producer(unpooled)
        finite = np.all(np.isfinite([chain.scale, chain.shift]))
        if source is None or graph.sole_consumer(unpooled) is None or not finite:
            return False
        bits = packed_like(unpooled, derived(unpooled.name, "/signs"))
        if is_float_bconv(source):
            if not _threshold(graph, source, bits, sign.output, chain, notes):
                return False
        elif not _shift_bias(graph, source, chain):
            return False
        else:
            graph.insert(custom_op(LCE_QUANTIZE, [unpooled], bits), before=sign)
    padding = None if pad is None else constant_padding(pad)
    if padding is not None:
        bits = pad_packed(graph, bits, unpooled.channels, padding.amounts, -1, before=sign)
    graph.replace(sign, pool_of_bits(pool, bits, sign.output))
    for op in (*chain.ops, pool, *([pad] if pad else [])):
        graph.remove(op)
    return True


def _padding_of(graph: Graph, pool: Op) -> Op | None:
    """The op that pads what is pooled with what is below all numbers, where it does nothing else; bits have -1 there.

    PyTorch's pools pad by themselves, and seldom as SAME does.
    """
    pad = graph.producer(pool.input(0))
    if pad is None or pad.name != "PADV2" or graph.sole_consumer(pad.output) is not pool:
        return None
    padding, channels = constant_padding(pad), pool.input(0).channels
    if padding is None or not padding.is_spatial or padding.value > np.finfo(np.float32).min:
        return None
    packs = channels < BITS_PER_WORD or channels % BITS_PER_WORD == 0
    return pad if packs and pad.output.type == "FLOAT32" else None


def _threshold(graph: Graph, source: Op, bits: Tensor, result: Tensor, chain: AffineChain, notes: Notes) -> bool:
    """The LceBconv2d in front of the pooling writes the signs of the scaled and shifted values."""
    negative = chain.scale < 0
    if not can_pack(source, notes):
        return False
    if np.any(negative) and not can_negate_channels(graph, result):
        return notes.left_alone(source, _NEGATIVE)
    multiplier, bias = (values.astype(np.float64) * chain.scale for values in multiplier_and_bias(source))
    bias = chain.lowered(bias + chain.shift)
    if not np.all(np.isfinite([multiplier, bias])):
        return False
    if np.any(negative):
        negate_channels(graph, result, negative)
    write_bits(graph, source, bits, multiplier, bias, complement=negative)
    notes.fused(source, "batch norm and sign behind MAX_POOL_2D")
    return True


def _shift_bias(graph: Graph, source: Op, chain: AffineChain) -> bool:
    """A float convolution in front of the pooling takes the sign's threshold into its bias."""
    if source.name not in ("CONV_2D", "DEPTHWISE_CONV_2D") or fused_activation(source) != 0 or np.any(chain.scale <= 0):
        return False
    if chain.strict or len(source.inputs) < 3:  # a sum would lose so small an addend
        return False
    bias = bias_values(source.optional(2), chain.scale.size)
    if bias is None or source.output.type != "FLOAT32" or source.input(1).type != "FLOAT32":
        return False
    level = chain.shift / chain.scale
    total = bias + level
    with np.errstate(over="ignore", invalid="ignore"):
        above = next_level(level.astype(np.float32), up=True)
        if np.any(is_short(above)):  # right below a short number stands what is strict at that one
            return False
        shifted = total.astype(np.float32)
    if not np.all(np.isfinite(shifted)) or np.any(is_lost(chain.addend / chain.scale, total)):
        return False
    graph.set_input(source, 2, constant(derived(source.input(1).name, "/bias"), shifted))
    # Who compares two models by the names of tensors must not take these values for the source's.
    source.output.name = derived(source.output.name, "/shifted")
    return True
