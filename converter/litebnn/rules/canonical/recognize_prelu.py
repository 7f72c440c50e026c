"""The form relu(x) - slope · relu(-x), or relu(x) + (-slope) · relu(-x), of a PReLU -> PRELU."""

from __future__ import annotations

from litebnn.analysis.affine import per_channel
from litebnn.analysis.match import fused_activation, uniform
from litebnn.build.notes import Notes, each
from litebnn.contract import Activation
from litebnn.graph import Graph, Op, Tensor, builtin_op, constant, derived, facts


@each("ADD", "SUB")
def recognize_prelu(graph: Graph, op: Op, notes: Notes) -> bool:
    above, below = graph.producer(op.input(0)), graph.producer(op.input(1))
    if above is None or below is None or above.name != "RELU" or below.name != "MUL":
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
