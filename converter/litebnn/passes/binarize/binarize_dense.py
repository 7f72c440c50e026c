"""FULLY_CONNECTED of a sign with ±alpha weights -> 1×1 LceBconv2d between reshapes."""

from __future__ import annotations

import numpy as np

from litebnn.contract import BConv2DOptions
from litebnn.graph import Graph, Op, packed_words
from litebnn.rewriting.bconv import bconv_of
from litebnn.rewriting.build import derived, like
from litebnn.rewriting.each import each
from litebnn.rewriting.notes import Notes
from litebnn.rewriting.reasons import why_no_sign
from litebnn.rewriting.reshapes import reshape_op
from litebnn.rewriting.signs import bits_of_signs, holds_signs
from litebnn.rewriting.weights import binary_parts, not_float, weight_values


@each("FULLY_CONNECTED")
def binarize_dense(graph: Graph, op: Op, notes: Notes) -> bool:
    if op.output.type != "FLOAT32":  # a quantized layer of a sign has become a float one by now, or there is a reason
        return False
    if not holds_signs(graph, op.input(0)):
        return not notes.has_reasons(op) and notes.left_alone(op, why_no_sign(graph, op.input(0)))
    weights = weight_values(op.input(1))
    if weights is None:
        return notes.left_alone(op, not_float(op.input(1)))
    parts = binary_parts(graph, op, weights)
    if isinstance(parts, str):
        return notes.left_alone(op, parts)
    minus_one, alpha, bias = parts
    bits = bits_of_signs(graph, op.input(0), before=op)
    channels_out, channels_in = weights.shape
    rows = op.input(0).dims[:-1]
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
    return True
