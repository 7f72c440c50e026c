"""A layer whose weights take two values in each output channel that are not opposite becomes two layers.

AdaBin has weights beta ± alpha, with an alpha and a beta for each output channel. One layer has the weights ±alpha. The
other one has a single output channel and the weights 1. It adds up the input, times beta in each output channel.
"""

from __future__ import annotations

import copy

import numpy as np

from litebnn.analysis.few_values import padded_values, sum_of_signs, values_read
from litebnn.analysis.padding import unpadded_input
from litebnn.analysis.weights import uneven_weights
from litebnn.contract import Activation
from litebnn.graph import Graph, Op, builtin_op, constant, derived, like
from litebnn.rules.build.notes import Notes, each
from litebnn.rules.build.signs import holds_signs


@each("CONV_2D", "FULLY_CONNECTED")
def split_uneven_weights(graph: Graph, op: Op, notes: Notes) -> bool:
    if op.output.type != "FLOAT32" or not _reads_few_values(graph, op):
        return False
    found = uneven_weights(graph, op, assume_nonzero=notes.options["assume_nonzero"])
    if found is None:
        return False
    name, activation, output = op.output.name, op.options.fused_activation_function, op.output
    op.options.fused_activation_function = int(Activation.NONE)
    magnitudes = found.distance.reshape(-1, *[1] * (found.minus_one.ndim - 1))
    weights = np.where(found.minus_one, -magnitudes, magnitudes)
    graph.set_input(op, 1, constant(derived(op.input(1).name, "/even"), weights))
    graph.set_output(op, like(output, derived(name, "/even")))
    ones = constant(derived(name, "/ones"), np.ones((1, *weights.shape[1:]), np.float32))
    bias = constant(derived(name, "/no_bias"), np.zeros(1, np.float32))
    sums = like(output, derived(name, "/sums"), dims=(*output.dims[:-1], 1))
    adds_up = graph.insert(Op(op.code, [op.input(0), ones, bias], [sums], copy.copy(op.options)), before=op)
    notes.became(op, adds_up)
    middle = constant(derived(name, "/middle"), found.middle)
    total = builtin_op("ADD", [op.output, like(output, derived(name, "/middles"))], output)
    total.options.fused_activation_function = activation
    graph.insert(total, after=op)
    graph.insert(builtin_op("MUL", [sums, middle], total.input(1)), before=op)
    return True


def _reads_few_values(graph: Graph, layer: Op) -> bool:
    """True if signs stand for the values of a layer's input, or will once their middle is subtracted."""
    source, zeros = unpadded_input(graph, layer)
    few = values_read(graph, layer, source, is_padded=bool(np.any(zeros)))
    if few is None:
        return holds_signs(graph, source)
    return sum_of_signs(graph, few) is not None or padded_values(graph, layer) is not None
