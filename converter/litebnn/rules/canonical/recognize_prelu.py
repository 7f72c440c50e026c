"""The forms relu(x) - slope · relu(-x) and relu(x) + (-slope) · relu(-x) of a PReLU become a PRELU.

Exporters fold the minus of -x into a copy of the preceding layer's weights. Therefore this rule first finds two layers
with opposite weights, each with a RELU. It keeps one of them, and computes the other one's output by NEG and RELU.
"""

from __future__ import annotations

import numpy as np

from litebnn.analysis.affine import per_channel
from litebnn.analysis.match import floats, fused_activation, uniform
from litebnn.contract import Activation
from litebnn.graph import Graph, Op, Tensor, builtin_op, constant, derived, facts, like
from litebnn.rules.build.notes import Notes, each
from litebnn.rules.build.ops import split_activation


@each("ADD", "SUB", "CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED")
def recognize_prelu(graph: Graph, op: Op, notes: Notes) -> bool:
    return _merge_opposite_layers(graph, op, notes) if facts(op).layer else _write_prelu(graph, op)


def _write_prelu(graph: Graph, op: Op) -> bool:
    above, below = graph.producer(op.input(0), "RELU"), graph.producer(op.input(1), "MUL")
    if above is None or below is None:
        return False
    x = above.input(0)
    for index in (0, 1):
        slopes = per_channel(below.input(1 - index), x.channels)
        if slopes is not None and _is_relu_of_opposite(graph, below.input(index), x):
            break
    else:
        return False
    plain = fused_activation(op) == 0 and fused_activation(below) == 0
    if not plain or x.type != "FLOAT32" or not len(op.output.dims) >= 2 or op.output.dims != x.dims:
        return False
    slopes = slopes if op.name == "SUB" else -slopes
    alpha = constant(derived(op.output.name, "/slopes"), slopes.reshape(*[1] * (len(x.dims) - 2), -1))
    graph.replace(op, builtin_op("PRELU", [x, alpha], op.output))
    return True


def _is_relu_of_opposite(graph: Graph, tensor: Tensor, x: Tensor) -> bool:
    op = graph.producer(tensor)
    if op is not None and facts(op).clamp == Activation.RELU:
        op = graph.producer(op.input(0))
    elif op is None or fused_activation(op) != Activation.RELU:
        return False
    if op is None or op.inputs[0] is not x:
        return False
    return op.name == "NEG" or (op.name == "MUL" and uniform(op.input(1)) == -1)


def _merge_opposite_layers(graph: Graph, op: Op, notes: Notes) -> bool:
    if fused_activation(op) != Activation.RELU:
        return False
    earlier = graph.ops[: graph.ops.index(op)]
    other = next((twin for twin in graph.consumers(op.input(0)) if twin in earlier and _is_opposite(op, twin)), None)
    if other is None:
        return False
    split_activation(graph, other)
    opposite = like(other.output, derived(op.output.name, "/opposite"))
    graph.insert(builtin_op("NEG", [other.output], opposite), before=op)
    graph.replace(op, builtin_op("RELU", [opposite], op.output))
    notes.merged(op)
    return True


def _is_opposite(op: Op, other: Op) -> bool:
    if other.name != op.name or other.options != op.options or other.output.dims != op.output.dims:
        return False
    return all(_is_negative(op.inputs[i], other.inputs[i]) for i in facts(op).constants if i < len(op.inputs))


def _is_negative(tensor: Tensor | None, other: Tensor | None) -> bool:
    values, others = floats(tensor), floats(other)
    if values is None or others is None:
        return tensor is None and other is None
    return np.array_equal(values, -others)
