"""A CONV_2D, FULLY_CONNECTED or BATCH_MATMUL that reads signs and has ±alpha weights becomes an LceBconv2d."""

from __future__ import annotations

from litebnn.analysis.few_values import few_values
from litebnn.analysis.padding import unpadded_input, why_unknown_padding
from litebnn.analysis.reasons import STAYS_TERNARY, TERNARY, why_no_sign
from litebnn.analysis.weights import BINARY_LAYERS, OF_TWO_ACTIVATIONS, binary_parts, is_of_two_activations
from litebnn.graph import Graph, Op, facts
from litebnn.rules.build.bconv import bconv_of, options_of_conv, replace_dense
from litebnn.rules.build.notes import Notes, each
from litebnn.rules.build.ops import split_activation
from litebnn.rules.build.signs import bits_of_signs, holds_signs


@each(*BINARY_LAYERS, "DEPTHWISE_CONV_2D", "TRANSPOSE_CONV", "CONV_3D")
def binarize_layers(graph: Graph, op: Op, notes: Notes) -> bool:
    data, (source, zeros) = op.input(facts(op).data), unpadded_input(graph, op)
    are_signs = holds_signs(graph, source)
    if op.name not in BINARY_LAYERS:  # the groups of a depthwise convolution have a single channel each
        are_few = are_signs or any(few_values(graph, tensor) is not None for tensor in (source, data))
        reason = f"there is no binary {op.name}" if are_few else why_no_sign(graph, data)
        return not notes.has_reasons(op) and notes.left_alone(op, reason)
    if is_of_two_activations(graph, op):
        return notes.left_alone(op, OF_TWO_ACTIVATIONS)
    if op.output.type != "FLOAT32":  # quantized layers of a sign are float by now, except those that have a reason
        is_two = op.name == "BATCH_MATMUL" and few_values(graph, source) is not None
        return is_two and notes.left_alone(op, f"there is no binary BATCH_MATMUL of {op.output.type}")
    if not are_signs:
        reason = why_no_sign(graph, data)
        if reason == TERNARY and notes.options["assume_nonzero"]:
            reason = STAYS_TERNARY
        return not notes.has_reasons(op) and notes.left_alone(op, reason)
    parts = why_unknown_padding(op, zeros) or binary_parts(graph, op, assume_nonzero=notes.options["assume_nonzero"])
    if isinstance(parts, str):
        return notes.left_alone(op, parts)
    notes.took_zeros(op, parts.zeros, parts.weights.size)
    split_activation(graph, op)
    bits = bits_of_signs(graph, source, before=op)
    name, numbers = op.input(1).name, (parts.minus_one, parts.alpha, parts.bias)
    if op.name != "CONV_2D":
        notes.made_binary(op, replace_dense(graph, op, bits, name, *numbers))
        return True
    _, height, width, _ = parts.weights.shape
    options = options_of_conv(op, bits, (height, width), zeros)
    notes.made_binary(op, graph.replace(op, bconv_of(bits, op.output, name, *numbers, options)))
    return True
