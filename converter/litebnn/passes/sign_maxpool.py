"""Max pooling between layers happens on bits: sign(maxpool(x)) is maxpool(sign(x)).

A per-channel affine (batch norm) may stand between the pooling and the sign. A positive scale commutes with the
maximum; a negative one turns it into a minimum, -max(-sign(x)), whose outer negation goes into the filters that read
the bits.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from litebnn.contract import BMAXPOOL_2D, DEQUANTIZE, QUANTIZE, BMaxPool2DOptions, encode_options
from litebnn.flatbuffer import Array, Graph, Op, Tensor, constant, packed_words
from litebnn.passes.binary_conv import bias_values
from litebnn.passes.common import (
    bits_of,
    channel_values,
    custom,
    derived,
    fused_activation,
    is_float_bconv,
    is_strictness,
    like,
    next_level,
    quantize,
)
from litebnn.passes.negated_channels import can_negate_channels, negate_channels
from litebnn.passes.notes import Notes
from litebnn.passes.packed_output import can_pack, write_bits
from litebnn.passes.post_activation import affine_of


@dataclass(frozen=True)
class AffineChain:
    """Ops in front of a sign that together compute source · scale + shift, the last one first.

    Attributes:
        scale, shift: float64 [channels].
        strict: the sign is +1 above zero only, not at zero.
    """

    ops: tuple[Op, ...]
    source: Tensor
    scale: Array
    shift: Array
    strict: bool

    def lowered(self, values: Array) -> Array:
        """float32 addends for which a plain sign does what a strict one does for `values`."""
        values = values.astype(np.float32)
        return next_level(values, up=False) if self.strict else values


def affine_chain(graph: Graph, tensor: Tensor) -> AffineChain:
    """The longest run of per-channel affine ops that ends in `tensor` and that nobody else reads from."""
    channels = tensor.channels
    ops: list[Op] = []
    scale, shift, strict = np.ones(max(channels, 0)), np.zeros(max(channels, 0)), False
    while (op := graph.producer(tensor)) is not None and graph.sole_consumer(tensor) is not None and channels > 0:
        if fused_activation(op) != 0 or not op.inputs or not op.outputs:
            break
        constant_last = op.inputs[-1] is not None and op.input(-1).array is not None
        affine = affine_of(op, channels, left=constant_last)
        source = op.inputs[0] if constant_last or op.name == "NEG" else op.inputs[-1]
        if affine is None or source is None or source.dims != tensor.dims or source.type != "FLOAT32":
            break
        if not ops and is_strictness(affine[1]):
            strict = True
        else:
            scale, shift = affine[0] * scale, affine[1] * scale + shift
        ops.append(op)
        tensor = source
    return AffineChain(tuple(ops), tensor, scale, shift, strict)


def sign_before_maxpool(graph: Graph, notes: Notes) -> bool:
    changed = False
    for op in list(graph.ops):
        if op.name == QUANTIZE and op in graph.ops:
            changed |= _move(graph, op, notes)
    return changed


def pool_of_signs(graph: Graph, notes: Notes) -> bool:
    """MAX_POOL_2D of an unpacked sign -> LceBMaxPool2d of its bits."""
    changed = False
    for op in list(graph.ops):
        bits = bits_of(graph, op.input(0)) if op.name == "MAX_POOL_2D" else None
        if bits is None or fused_activation(op) != 0:
            continue
        pooled = like(op.output, derived(op.output.name, "/bits"), type="INT32", dims=_packed(op.output))
        graph.insert(_pool_op(op, bits, pooled), before=op)
        graph.replace(op, Op(custom(DEQUANTIZE), [pooled], [op.output]))
        changed = True
    return changed


def _packed(tensor: Tensor) -> tuple[int, ...]:
    return (*tensor.dims[:-1], packed_words(tensor.channels))


def _pool_op(pool: Op, bits: Tensor, pooled: Tensor) -> Op:
    o = pool.options
    options = BMaxPool2DOptions(o.padding, o.strideW, o.strideH, o.filterWidth, o.filterHeight)
    return Op(custom(BMAXPOOL_2D), [bits], [pooled], custom_options=encode_options(options))


def _move(graph: Graph, quantizer: Op, notes: Notes) -> bool:
    chain = affine_chain(graph, quantizer.input(0))
    pool = graph.producer(chain.source)
    if pool is None or pool.name != "MAX_POOL_2D" or graph.sole_consumer(pool.output) is None:
        return False
    if fused_activation(pool) != 0 or pool.output.type != "FLOAT32" or pool.output.channels < 1:
        return False
    unpooled = pool.input(0)
    if not chain.ops:
        bits = quantize(graph, unpooled, derived(unpooled.name, "/signs"), before=quantizer)
    else:
        source = graph.producer(unpooled)
        if (
            source is None
            or graph.sole_consumer(unpooled) is None
            or not np.all(np.isfinite([chain.scale, chain.shift]))
        ):
            return False
        bits = like(unpooled, derived(unpooled.name, "/signs"), type="INT32", dims=_packed(unpooled))
        if is_float_bconv(source):
            if not _threshold(graph, source, bits, quantizer.output, chain, notes):
                return False
        elif not _shift_bias(graph, source, chain):
            return False
        else:
            graph.insert(Op(custom(QUANTIZE), [unpooled], [bits]), before=quantizer)
    graph.replace(quantizer, _pool_op(pool, bits, quantizer.output))
    for op in (*chain.ops, pool):
        graph.remove(op)
    return True


def _threshold(graph: Graph, source: Op, bits: Tensor, result: Tensor, chain: AffineChain, notes: Notes) -> bool:
    """The LceBconv2d in front of the pooling writes the signs of the scaled and shifted values."""
    negative = chain.scale < 0
    if not can_pack(source, notes):
        return False
    if np.any(negative) and not can_negate_channels(graph, result):
        notes.left_alone(
            source,
            "the batch norm behind its max pooling has negative scales, and the next layer pads with ones: its output "
            "stays float",
        )
        return False
    multiplier = channel_values(source, 2, 1.0).astype(np.float64) * chain.scale
    bias = chain.lowered(channel_values(source, 3, 0.0).astype(np.float64) * chain.scale + chain.shift)
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
    if chain.strict:  # a sum would lose so small an addend
        return False
    bias = bias_values(source.optional(2), chain.scale.size)
    if bias is None or source.output.type != "FLOAT32" or source.input(1).type != "FLOAT32":
        return False
    with np.errstate(over="ignore"):
        shifted = (bias + chain.shift / chain.scale).astype(np.float32)
    if not np.all(np.isfinite(shifted)):
        return False
    if len(source.inputs) < 3:
        return False
    graph.set_input(source, 2, constant(derived(source.input(1).name, "/bias"), shifted))
    return True
