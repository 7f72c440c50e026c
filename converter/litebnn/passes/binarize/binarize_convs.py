"""CONV_2D of a sign with a ±alpha filter -> LceBconv2d."""

from __future__ import annotations

from litebnn.contract import PadValues
from litebnn.graph import Graph, Op, facts
from litebnn.rewriting.bconv import bconv_of, options_of_conv
from litebnn.rewriting.each import each
from litebnn.rewriting.notes import Notes
from litebnn.rewriting.padding import why_unknown_padding, without_zeros
from litebnn.rewriting.reasons import why_no_sign
from litebnn.rewriting.signs import bits_of_signs, find_levels, find_path_to_layer, find_two_values, holds_signs
from litebnn.rewriting.weights import binary_parts, not_float, weight_values


@each("CONV_2D", "DEPTHWISE_CONV_2D", "TRANSPOSE_CONV", "CONV_3D")
def binarize_convs(graph: Graph, op: Op, notes: Notes) -> bool:
    source = op.input(facts(op).data)
    unpadded, zeros = without_zeros(graph, source)
    if op.name != "CONV_2D":  # the groups of a depthwise convolution have a single channel each
        is_sign = holds_signs(graph, unpadded) or find_two_values(graph, unpadded) is not None
        is_sign = is_sign or find_path_to_layer(graph, op) is not None or find_levels(graph, unpadded) is not None
        return not notes.has_reasons(op) and notes.left_alone(
            op, f"there is no binary {op.name}" if is_sign else why_no_sign(graph, source)
        )
    if op.output.type != "FLOAT32":  # quantized layers of a sign are float by now, except those that have a reason
        return False
    if not holds_signs(graph, unpadded):
        return not notes.has_reasons(op) and notes.left_alone(op, why_no_sign(graph, source))
    weights = weight_values(op.input(1))
    if weights is None:
        return notes.left_alone(op, not_float(op.input(1)))
    parts = why_unknown_padding(op, zeros) or binary_parts(graph, op, weights)
    if isinstance(parts, str):
        return notes.left_alone(op, parts)
    bits = bits_of_signs(graph, unpadded, before=op)
    _, height, width, _ = weights.shape
    options = options_of_conv(op, bits, op.input(0).channels, (height, width), zeros, PadValues.ZERO)
    bconv = bconv_of(bits, op.output, op.input(1).name, *parts, options)
    notes.made_binary(op, graph.replace(op, bconv))
    return True
