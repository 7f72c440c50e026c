"""A layer of few, evenly spaced levels, such as 2-bit DoReFa's, with ±alpha weights -> LceBconv2d.

Levels are a sum of signs, each of which compares with a threshold. The new layer reads these signs as channels, with
the same weights for each sign, and a bias for the middle level. For 2 bits that is three times the work of a binary
layer.
"""

from __future__ import annotations

import numpy as np

from litebnn.contract import PadValues
from litebnn.graph import Array, Graph, Op, Tensor
from litebnn.rewriting.bconv import bconv_of, options_of_conv, replace_dense
from litebnn.rewriting.build import split_activation
from litebnn.rewriting.each import each
from litebnn.rewriting.notes import Notes
from litebnn.rewriting.padding import layer_padding, why_unknown_padding, without_zeros
from litebnn.rewriting.signs import MovedLevels, Thermometer, find_levels
from litebnn.rewriting.signs.thermometer_bits import moved_in_front, thermometer_bits
from litebnn.rewriting.weights import binary_weights, layer_bias, layer_weights, not_float, why_not_binary


@each("CONV_2D", "FULLY_CONNECTED", "BATCH_MATMUL")
def binarize_levels(graph: Graph, op: Op, notes: Notes) -> bool:
    if op.output.type != "FLOAT32":
        return False
    source, zeros = op.input(0), np.zeros((2, 2), np.int32)
    if op.name == "CONV_2D":
        source, zeros = without_zeros(graph, source)
    levels = find_levels(graph, source)
    if levels is None:
        return False
    weights = _weights(graph, op)
    if isinstance(weights, str):
        return notes.left_alone(op, weights)
    parts = _why_not_padded(op, levels, zeros) or _why_not_of_levels(op, weights) or binary_weights(weights)
    if isinstance(parts, str):
        return notes.left_alone(op, parts)
    channels_out = weights.shape[0]
    bias = np.zeros(channels_out, np.float32) if op.name == "BATCH_MATMUL" else layer_bias(graph, op, channels_out)
    if bias is None:
        return notes.left_alone(op, "its bias is not a float constant")
    split_activation(graph, op)
    notes.made_binary(op, _rewrite(graph, op, source, zeros, levels, *parts, bias))
    return True


def _rewrite(
    graph: Graph, op: Op, source: Tensor, zeros: Array, levels: MovedLevels, minus_one: Array, alpha: Array, bias: Array
) -> Op:
    thermometer = levels.thermometer if _is_padded(op, zeros) else levels.thermometer.all_rising()
    x = moved_in_front(graph, levels, before=op)
    bits = thermometer_bits(graph, thermometer, x, source, before=op)
    name = op.input(1).name
    parts = of_signs(thermometer, minus_one, alpha, bias)
    if op.name != "CONV_2D":
        return replace_dense(graph, op, bits, name, *parts)
    _, height, width, channels = parts[0].shape
    options = options_of_conv(op, bits, channels, (height, width), zeros, PadValues.ONE)
    return graph.replace(op, bconv_of(bits, op.output, name, *parts, options))


def of_signs(thermometer: Thermometer, minus_one: Array, alpha: Array, bias: Array) -> tuple[Array, Array, Array]:
    """The weights and bias, for the signs of a thermometer, of a layer of its levels.

    Args:
        minus_one: bool [O, ..., channels], true where a weight is negative.
        alpha: float32 [O], the magnitude.
        bias: float32 [O].
    Returns:
        bool [O, ..., k · channels], float32 [O] and float32 [O].
    """
    flat = minus_one.reshape(minus_one.shape[0], -1)
    sums = alpha.astype(np.float64) * (flat.shape[1] - 2 * np.count_nonzero(flat, axis=1))
    return (
        np.concatenate([minus_one ^ (scale < 0) for scale in thermometer.scales], axis=-1),
        (alpha * abs(thermometer.scales[0])).astype(np.float32),
        (bias + thermometer.middle * sums).astype(np.float32),
    )


def _weights(graph: Graph, op: Op) -> Array | str:
    """float32 [O, ..., channels]; or why the layer has no such weights."""
    weights = layer_weights(graph, op)
    if op.name == "BATCH_MATMUL":
        if weights is not None and weights.ndim == 2 and not op.options.adj_x:
            weights = weights if op.options.adj_y else weights.T
            if weights.shape[1] == op.input(0).channels and sum(d < 0 for d in op.input(0).dims) <= 1:
                return weights
        return "it is no product with a constant float matrix"
    return not_float(op.input(1)) if weights is None or weights.ndim < 2 else weights


def _why_not_of_levels(op: Op, weights: Array) -> str | None:
    if op.name == "BATCH_MATMUL":
        return None
    if weights.shape[-1] != op.input(0).channels and op.name == "CONV_2D":
        return "it has groups, and signs of its input's levels would not lie beside each other in each"
    return why_not_binary(op, weights)


def _why_not_padded(op: Op, levels: MovedLevels, zeros: Array) -> str | None:
    unknown = why_unknown_padding(op, zeros)
    if unknown or levels.thermometer.has_zero or not _is_padded(op, zeros):
        return unknown
    return "its input takes several levels and is padded with 0, which is none of them"


def _is_padded(op: Op, zeros: Array) -> bool:
    return bool(np.any(zeros)) or layer_padding(op) != ((0, 0), (0, 0))
