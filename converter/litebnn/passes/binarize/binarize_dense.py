"""FULLY_CONNECTED of a sign with ±alpha weights -> 1×1 LceBconv2d between reshapes."""

from __future__ import annotations

import numpy as np

from litebnn.contract import BConv2DOptions
from litebnn.graph import Graph, Op, packed_words
from litebnn.rewriting.bconv import bconv_of
from litebnn.rewriting.build import derived, like, split_activation
from litebnn.rewriting.match import bits_of, fused_activation
from litebnn.rewriting.notes import Notes, rewrite_layers
from litebnn.rewriting.reasons import why_no_sign
from litebnn.rewriting.reshapes import reshape_op
from litebnn.rewriting.weights import bias_values, binary_weights


def binarize_dense(graph: Graph, notes: Notes) -> bool:
    return rewrite_layers(graph, notes, "FULLY_CONNECTED", _convert)


def _convert(graph: Graph, op: Op, notes: Notes) -> str | None:
    bits = bits_of(graph, op.input(0))
    if bits is None:
        return why_no_sign(graph, op.input(0))
    weights = op.input(1).array
    if weights is None or weights.dtype != np.float32 or op.options.weights_format != 0:
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
    count = -1 if any(d < 0 for d in rows) else int(np.prod(rows, dtype=np.int64))
    pixels = like(bits, derived(op.output.name, "/input"), dims=(count, 1, 1, packed_words(channels_in)))
    result = like(op.output, derived(op.output.name, "/pixels"), dims=(count, 1, 1, channels_out))
    filter_minus_one = minus_one.reshape(channels_out, 1, 1, channels_in)
    options = BConv2DOptions(channels_in=channels_in)
    bconv = bconv_of(pixels, result, op.input(1).name, filter_minus_one, alpha, bias, options)
    graph.insert(reshape_op(bits, pixels), before=op)
    graph.insert(bconv, before=op)
    graph.replace(op, reshape_op(result, op.output))
    notes.made_binary(op, bconv)
    return None
