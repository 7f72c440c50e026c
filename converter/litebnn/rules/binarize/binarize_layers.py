"""A CONV_2D, FULLY_CONNECTED or BATCH_MATMUL of signs, or of few levels, with ±alpha weights becomes an LceBconv2d.

Levels, such as 2-bit DoReFa's, are a sum of signs, each of which compares with a threshold. The new layer reads these
signs as channels, with the same weights for each sign, and a bias for the middle level. For 2 bits, the new layer does
three times the work of a binary layer.
"""

from __future__ import annotations

import numpy as np

from litebnn.analysis.padding import layer_padding, why_unknown_padding, without_zeros
from litebnn.analysis.reasons import why_no_sign
from litebnn.analysis.sums import FewValues, few_levels, few_values, has_zero
from litebnn.analysis.weights import BinaryParts, binary_parts, binary_weights
from litebnn.build.bconv import bconv_of, options_of_conv, replace_dense
from litebnn.build.notes import Notes, each
from litebnn.build.ops import split_activation
from litebnn.build.signs import bits_of_levels, bits_of_signs, holds_signs
from litebnn.contract import PadValues
from litebnn.graph import Array, Graph, Op, facts

_BINARY = ("CONV_2D", "FULLY_CONNECTED", "BATCH_MATMUL")


@each(*_BINARY, "DEPTHWISE_CONV_2D", "TRANSPOSE_CONV", "CONV_3D")
def binarize_layers(graph: Graph, op: Op, notes: Notes) -> bool:
    data, zeros = op.input(facts(op).data), np.zeros((2, 2), np.int32)
    source, padded = without_zeros(graph, data)
    if op.name == "CONV_2D":
        zeros = padded
    elif op.name in _BINARY:
        source = data
    are_signs, few = holds_signs(graph, source), few_values(graph, source)
    levels = None if are_signs or few is None or not few.are_levels else few
    if op.name not in _BINARY:  # the groups of a depthwise convolution have a single channel each
        is_sign = are_signs or few is not None or few_values(graph, data) is not None
        reason = f"there is no binary {op.name}" if is_sign else why_no_sign(graph, data)
        return not notes.has_reasons(op) and notes.left_alone(op, reason)
    if op.output.type != "FLOAT32":  # quantized layers of a sign are float by now, except those that have a reason
        is_two = op.name == "BATCH_MATMUL" and few is not None
        return is_two and notes.left_alone(op, f"there is no binary BATCH_MATMUL of {op.output.type}")
    if not are_signs and levels is None:
        return not notes.has_reasons(op) and notes.left_alone(op, why_no_sign(graph, data))
    parts = why_unknown_padding(op, zeros) or _why_not_of_levels(op, levels, zeros) or binary_parts(graph, op)
    if isinstance(parts, str):
        return notes.left_alone(op, parts)
    split_activation(graph, op)
    if levels is None:
        bits, values = bits_of_signs(graph, source, before=op), PadValues.ZERO
    else:
        total = few_levels(levels.first, for_zeros=_is_padded(op, zeros))
        assert total is not None
        bits, values = bits_of_levels(graph, levels, total, source, before=op), PadValues.ONE
        weights, bias = total.weights(parts.weights), total.bias(parts.bias, parts.weights)
        of_signs = binary_weights(weights)
        assert not isinstance(of_signs, str)
        parts = BinaryParts(weights, *of_signs, bias)
    name, numbers = op.input(1).name, (parts.minus_one, parts.alpha, parts.bias)
    if op.name != "CONV_2D":
        notes.made_binary(op, replace_dense(graph, op, bits, name, *numbers))
        return True
    channels = op.input(0).channels if levels is None else parts.weights.shape[3]
    _, height, width, _ = parts.weights.shape
    options = options_of_conv(op, bits, channels, (height, width), zeros, values)
    notes.made_binary(op, graph.replace(op, bconv_of(bits, op.output, name, *numbers, options)))
    return True


def _why_not_of_levels(op: Op, levels: FewValues | None, zeros: Array) -> str | None:
    if levels is None:
        return None
    if _is_padded(op, zeros) and not has_zero(levels.numbers):
        return "its input takes several levels and is padded with 0, which is none of them"
    if op.name == "CONV_2D" and op.input(1).shape[-1] != op.input(0).channels:
        return "it has groups, and signs of its input's levels would not lie beside each other in each"
    return None


def _is_padded(op: Op, zeros: Array) -> bool:
    return bool(np.any(zeros)) or layer_padding(op) != ((0, 0), (0, 0))
