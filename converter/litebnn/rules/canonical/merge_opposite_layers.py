"""Two layers with opposite weights, each with a RELU -> one layer with RELU, and NEG and RELU of its output.

An exporter that writes a PReLU as relu(x) and relu(-x) folds the minus into a copy of the preceding layer's weights.
"""

from __future__ import annotations

import numpy as np

from litebnn.analysis.match import floats, fused_activation
from litebnn.build.notes import Notes, each
from litebnn.build.ops import split_activation
from litebnn.contract import Activation
from litebnn.graph import Graph, Op, Tensor, builtin_op, derived, facts, like


@each("CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED")
def merge_opposite_layers(graph: Graph, op: Op, notes: Notes) -> bool:
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
