"""A MUL, DIV, ADD, SUB, NEG or clamp after a layer whose weights were quantized in training becomes part of the layer.

The integers of the weights stay those of the training, or their negatives. The multipliers go into the weights' scales,
one for each output channel.
"""

from __future__ import annotations

import numpy as np

from litebnn.analysis.affine import affine_of
from litebnn.analysis.match import fused_activation
from litebnn.analysis.quantization import INT8_MIN, along_axis, parameters, trained_weights
from litebnn.analysis.weights import bias_values
from litebnn.contract import Activation
from litebnn.graph import Array, Graph, Op, Tensor, constant, derived, facts
from litebnn.rules.build.notes import Notes, each

_MINUS_128 = "a batch norm with a negative multiplier cannot negate its int8 weights of -128"


@each("CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED", "TRANSPOSE_CONV")
def fold_batch_norm(graph: Graph, op: Op, notes: Notes) -> bool:
    follower = graph.sole_consumer(op.output)
    weights = trained_weights(graph, op.input(1))
    if follower is None or weights is None or fused_activation(op) != Activation.NONE:
        return False
    if follower.output.dims != op.output.dims or op.output.type != "FLOAT32":
        return False
    clamp = facts(follower).clamp
    if clamp is None:
        clamp = fused_activation(follower)
        if clamp is None or not _fold(graph, op, follower, weights, notes):
            return False
    op.options.fused_activation_function = int(clamp)
    notes.fused(op, follower.name)
    graph.remove(follower)
    graph.set_output(op, follower.output)
    return True


def _fold(graph: Graph, op: Op, follower: Op, weights: Tensor, notes: Notes) -> bool:
    """Changes the scales of the weights, their signs and the bias, so that the layer computes what `follower` does."""
    rule, widened, q, levels = facts(op).int8, graph.producer(op.input(1)), weights.quantization, weights.array
    assert rule is not None
    assert widened is not None
    assert q is not None
    assert levels is not None
    axis = max(rule.weights_axis or 0, 0)
    channels = op.output.channels
    affine = affine_of(follower, channels, left=follower.inputs[0] is op.output)
    bias = bias_values(op.optional(facts(op).constants[1]), channels)
    if affine is None or bias is None or levels.ndim <= axis or levels.shape[axis] != channels:
        return False
    if (q.scale.size > 1 and q.axis != axis) or graph.sole_consumer(widened.output) is not op:
        return False
    factor, shift = affine
    with np.errstate(all="ignore"):
        scale = (q.scale * np.abs(factor)).astype(np.float32)
        offset = (bias * factor + shift).astype(np.float32)
    if not np.all(np.isfinite(scale)) or not np.all(np.isfinite(offset)):
        return False
    signs = along_axis(np.sign(factor), levels.ndim, axis)
    if np.any((levels == INT8_MIN) & (signs < 0)):
        return notes.left_alone(op, _MINUS_128)
    vanishing = scale < np.finfo(np.float32).tiny
    signs = np.where(along_axis(vanishing, levels.ndim, axis), 0, signs).astype(np.int8)
    scale = np.where(vanishing, np.max(scale, initial=0, where=~vanishing) or 1, scale)
    _set_constants(graph, op, widened, levels * signs, scale, axis, offset)
    return True


def _set_constants(graph: Graph, op: Op, widened: Op, levels: Array, scale: Array, axis: int, offset: Array) -> None:
    scale = scale[:1] if np.all(scale == scale[0]) else scale
    kernel = constant(derived(widened.output.name, "/levels"), levels, parameters(scale, 0, axis))
    graph.set_input(widened, 0, kernel)
    place = facts(op).constants[1]
    if len(op.inputs) == place:
        op.inputs.append(None)
    graph.set_input(op, place, constant(derived(op.output.name, "/bias"), offset))
