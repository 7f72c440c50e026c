"""FULLY_CONNECTED of a sign with ±alpha weights -> 1×1 LceBconv2d between reshapes."""

from __future__ import annotations

import numpy as np

from litebnn.contract import BCONV_2D, BConv2DOptions, encode_options, pack_bits
from litebnn.flatbuffer import Graph, Op, constant, packed_words
from litebnn.passes.binary_conv import bias_values, binary_weights
from litebnn.passes.common import bits_of, custom, derived, fused_activation, like, reshape_op, split_activation
from litebnn.passes.notes import Notes
from litebnn.passes.reasons import why_no_sign


def binarize_dense(graph: Graph, notes: Notes) -> bool:
    changed = False
    for op in list(graph.ops):
        if op.name != "FULLY_CONNECTED" or op.output.type != "FLOAT32":
            continue
        reason = _convert(graph, op, notes)
        if reason is None:
            changed = True
        else:
            notes.left_alone(op, reason)
    return changed


def _convert(graph: Graph, op: Op, notes: Notes) -> str | None:
    bits = bits_of(graph, op.input(0))
    if bits is None:
        return why_no_sign(graph, op.input(0))
    weights = op.input(1).array
    if weights is None or weights.dtype != np.float32 or weights.ndim != 2 or op.options.weightsFormat != 0:
        return "its weights are not a float constant"
    channels_out, channels_in = weights.shape
    dims = op.input(0).dims
    if dims[-1] != channels_in:
        return f"it reads rows of {channels_in} across an input of {list(dims)}"
    rows = [d for d in dims[:-1] if d != 1]
    if sum(d < 0 for d in rows) > 1:
        return "more than one dimension of its input is unknown"
    parts = binary_weights(weights)
    if isinstance(parts, str):
        return parts
    bias = bias_values(op.optional(2), channels_out)
    if bias is None:
        return "its bias is not a float constant"
    if fused_activation(op) is None:
        return "its fused activation is not one of ReLU, ReLU6, ReLU1"
    split_activation(graph, op)

    minus_one, alpha = parts
    name = op.input(1).name
    count = -1 if any(d < 0 for d in rows) else int(np.prod(rows, dtype=np.int64))
    pixels = like(bits, derived(op.output.name, "/input"), dims=(count, 1, 1, packed_words(channels_in)))
    result = like(op.output, derived(op.output.name, "/pixels"), dims=(count, 1, 1, channels_out))
    bconv = Op(
        custom(BCONV_2D),
        [
            pixels,
            constant(name, pack_bits(minus_one).reshape(channels_out, 1, 1, -1)),
            constant(derived(name, "/multiplier"), alpha),
            constant(derived(name, "/bias"), bias),
            None,
        ],
        [result],
        custom_options=encode_options(BConv2DOptions(channels_in=channels_in)),
    )
    graph.insert(reshape_op(bits, pixels), before=op)
    graph.insert(bconv, before=op)
    graph.replace(op, reshape_op(result, op.output))
    notes.made_binary(op, bconv)
    return None
