"""MAX_POOL_2D of an unpacked sign -> LceBMaxPool2d of its bits."""

from __future__ import annotations

from litebnn.contract import BMAXPOOL_2D, DEQUANTIZE, BMaxPool2DOptions, encode_options
from litebnn.flatbuffer import Graph, Op, Tensor
from litebnn.passes.common import bits_of, custom, derived, fused_activation, like, packed_dims
from litebnn.passes.notes import Notes


def pool_of_signs(graph: Graph, notes: Notes) -> bool:
    changed = False
    for op in list(graph.ops):
        bits = bits_of(graph, op.input(0)) if op.name == "MAX_POOL_2D" else None
        if bits is None or fused_activation(op) != 0:
            continue
        pooled = like(op.output, derived(op.output.name, "/bits"), type="INT32", dims=packed_dims(op.output))
        graph.insert(pool_of_bits(op, bits, pooled), before=op)
        graph.replace(op, Op(custom(DEQUANTIZE), [pooled], [op.output]))
        changed = True
    return changed


def pool_of_bits(pool: Op, bits: Tensor, pooled: Tensor) -> Op:
    """The LceBMaxPool2d that pools `bits` as `pool` pools floats."""
    o = pool.options
    options = BMaxPool2DOptions(o.padding, o.strideW, o.strideH, o.filterWidth, o.filterHeight)
    return Op(custom(BMAXPOOL_2D), [bits], [pooled], custom_options=encode_options(options))
