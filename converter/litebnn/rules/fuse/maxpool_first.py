"""A MAX_POOL_2D moves before ops that keep the order of a channel's values, such as a batch norm, a clamp or a PReLU.

These ops then work on fewer pixels. Rounding does not change which value is the largest, so the result has the same
bits, except for the sign of zero. In channels with a negative scale of the batch norm, the preceding float convolution
is negated.
"""

from __future__ import annotations

import copy

import numpy as np

from litebnn.analysis.affine import affine_of, per_channel
from litebnn.analysis.match import floats, fused_activation
from litebnn.analysis.quantization import along_axis
from litebnn.analysis.weights import bias_values
from litebnn.contract import Activation
from litebnn.graph import Graph, Op, constant, derived, facts, like
from litebnn.rules.build.notes import Notes, each

# For each kind of layer, the axis of its weights that has the output channels.
_OUTPUT_AXES = {"CONV_2D": 0, "DEPTHWISE_CONV_2D": 3}


@each("MAX_POOL_2D")
def maxpool_first(graph: Graph, pool: Op, notes: Notes) -> bool:
    image = pool.input(0)
    op = graph.producer(image)
    if op is None or graph.sole_consumer(image) is not pool or not op.inputs:
        return False
    x, activation = op.inputs[0], fused_activation(pool)
    if activation is None or (activation and not (_has_fused_activation(op) and fused_activation(op) == 0)):
        return False
    if x is None or x.type != "FLOAT32" or x.dims != image.dims or pool.output.channels != image.channels:
        return False
    if pool.options.stride_w * pool.options.stride_h == 1 or not (_rises(op) or _made_to_rise(graph, op)):
        return False
    pooled = like(pool.output, derived(pool.output.name, "/pooled"))
    first = graph.insert(Op(pool.code, [x], [pooled], copy.copy(pool.options)), before=pool)
    behind = Op(op.code, [pooled, *op.inputs[1:]], [pool.output], copy.copy(op.options))
    if activation:
        first.options.fused_activation_function, behind.options.fused_activation_function = Activation.NONE, activation
    graph.replace(pool, behind)
    return True


def _has_fused_activation(op: Op) -> bool:
    return hasattr(op.options, "fused_activation_function")


def _rises(op: Op) -> bool:
    """True if an op is monotonically increasing in each channel."""
    if facts(op).clamp is not None:
        return True
    channels = op.output.channels
    if op.name == "PRELU":
        slopes = per_channel(op.input(1), channels)
        return slopes is not None and bool(np.all((slopes >= 0) & np.isfinite(slopes)))
    affine = affine_of(op, channels, left=True)
    if affine is None or fused_activation(op) is None:
        return False
    scale, shift = affine
    return bool(np.all((scale > 0) & np.isfinite(scale) & np.isfinite(shift)))


def _made_to_rise(graph: Graph, op: Op) -> bool:
    """Makes the scales of a MUL positive by negating the channels of the preceding float layer."""
    x, scales = op.input(0), floats(op.input(1)) if op.name == "MUL" else None
    layer = graph.producer(x)
    if scales is None or layer is None or graph.sole_consumer(x) is not op or fused_activation(op) is None:
        return False
    axis = _OUTPUT_AXES.get(layer.name)
    if axis is None or fused_activation(layer) != 0:
        return False
    channels = x.channels
    weights, factors = floats(layer.input(1)), per_channel(op.input(1), channels)
    bias_tensor = layer.optional(2)
    bias = bias_values(bias_tensor, channels)
    if weights is None or factors is None or bias is None or weights.shape[axis] != channels:
        return False
    if np.any(factors == 0) or not np.all(np.isfinite(factors)):
        return False
    signs = np.sign(factors)
    negated = weights * along_axis(signs, weights.ndim, axis)
    graph.set_input(layer, 1, constant(derived(layer.input(1).name, "/negated"), negated))
    if bias_tensor is not None:
        graph.set_input(layer, 2, constant(derived(bias_tensor.name, "/negated"), bias * signs))
    graph.set_input(op, 1, constant(derived(op.input(1).name, "/positive"), np.abs(scales)))
    x.name, x.origin = derived(x.name, "/rising"), None
    return True
