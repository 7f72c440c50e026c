"""Recognizes weights of ±alpha, weights of ±alpha and 0, and constant biases."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from litebnn.analysis.constants import constants_upstream, does_not_grow, evaluate
from litebnn.analysis.match import floats, fused_activation
from litebnn.analysis.quantization import bias_scale, dequantized, ends_within
from litebnn.contract import ACTIVATION_RANGES, BITS_PER_WORD, pack_bits
from litebnn.graph import Array, Graph, Op, Tensor, bits_of_type, facts

# The layers whose float weights can be packed.
PACKABLE = ("CONV_2D", "DEPTHWISE_CONV_2D", "TRANSPOSE_CONV")
# The layers that have a binary form. A transposed convolution becomes layers of these kinds.
BINARY_LAYERS = ("CONV_2D", "FULLY_CONNECTED", "BATCH_MATMUL")
OF_TWO_ACTIVATIONS = "both inputs are computed when the model runs"
OF_RUN_TIME = "its weights are computed when the model runs"
NOT_TERNARY = "its weights take other values than -alpha, 0 and alpha in an output channel"
# Magnitudes of weights count as equal if they differ by at most this share. Rounding makes them differ a little.
_MAGNITUDE_TOLERANCE = 1e-5
# Exporters compute some weights as (alpha · sign(w) - c) + c, which rounds. This number is the largest rounding error
# of the sum, if c is between -1 and 1.
_STRAIGHT_THROUGH_ROUNDING = 2.0**-23
_LARGEST_ROUNDING = 1e-3  # relative to alpha; a weight with a larger error is not binary
# The largest share of weights that are 0 for which `assume_nonzero` makes a layer binary; a single one always may be.
# Latent weights are drawn as exactly 0 now and then (once in 2**24 draws of float32, in 2**8 of bfloat16), and their
# sign is 0. Ternary and pruned layers have many more zeros, which are meant.
_FEW_ZEROS = 0.01
# The approximate number of weights that are examined at a time. Examining all at once would double the memory that the
# weights take.
_BLOCK = 1 << 18
# The approximate number of bytes that an op and its tensors take in a file, in addition to constants.
_OP_BYTES = 512


def weight_values(weights: Tensor) -> Array | None:
    """Returns the float32 values of constant weights. The weights of a float layer may be int8 or narrower (dynamic
    range)."""
    array = weights.array
    if weights.quantization is not None or weights.details is not None:
        return dequantized(weights)
    return array if array is not None and array.dtype == np.float32 else None


def layer_weights(graph: Graph, layer: Op) -> Array | None:
    """Returns the float32 values of a layer's weights, constant or computed from constants, output channels first."""
    weights = layer.input(facts(layer).constants[0])
    values = weight_values(weights) if weights.is_constant else evaluate(graph, weights)
    if values is None or values.dtype != np.float32 or values.ndim < 2:
        return None
    if layer.name != "BATCH_MATMUL":
        return values
    if layer.options.adj_x or values.ndim != 2:
        return None
    return values if layer.options.adj_y else np.ascontiguousarray(values.T)


def computed_weights(graph: Graph, layer: Op) -> Iterator[int]:
    """Yields the indices of the inputs with weights or a bias that ops compute from constants. An input is left out if
    replacing it by a constant would make the file larger.
    """
    for index in facts(layer).constants:
        tensor = layer.optional(index)
        if tensor is not None and not tensor.is_constant and does_not_grow(graph, tensor):
            yield index


def is_of_two_activations(graph: Graph, layer: Op) -> bool:
    """True if a dense layer or matrix product has no weights: both inputs are computed when the model runs."""
    inputs = (layer.input(facts(layer).constants[0]), layer.input(facts(layer).data))
    is_product = layer.name in ("BATCH_MATMUL", "FULLY_CONNECTED")
    return is_product and not any(tensor.is_constant or constants_upstream(graph, tensor) for tensor in inputs)


def not_float(graph: Graph, layer: Op) -> str:
    """Returns the reason why a layer whose weights are no float constant is not binary."""
    weights = layer.input(facts(layer).constants[0])
    if is_of_two_activations(graph, layer):
        return OF_TWO_ACTIVATIONS
    if layer.name == "BATCH_MATMUL":
        return "it is no product with a constant float matrix"
    if not weights.is_constant:
        return OF_RUN_TIME if constants_upstream(graph, weights) is None else "its weights are not a float constant"
    kind = "sparse" if weights.is_sparse else weights.type
    return f'its weights "{weights.name}" are {kind}, not a float constant'


def why_not_binary(layer: Op, weights: Array) -> str | None:
    """Returns the reason why a CONV_2D or FULLY_CONNECTED with these options cannot be binary, whatever its
    weights [O, ...] are. None if there is none.
    """
    channels_out, channels = weights.shape[0], weights.shape[-1]
    x = layer.input(facts(layer).data)
    dims, channels_in = x.dims, x.channels
    if layer.name == "CONV_2D":
        if min(channels, channels_in) < 1 or channels_in % channels or channels_out % (channels_in // channels):
            return f"its filter {list(weights.shape)} does not divide its {channels_in} input channels into groups"
        if channels != channels_in and channels % BITS_PER_WORD:
            return f"its groups have {channels} channels, not a multiple of {BITS_PER_WORD}"
    elif layer.name == "FULLY_CONNECTED" and layer.options.weights_format != 0:
        return "its weights are shuffled"
    elif dims and channels_in < 0:
        return "how many columns its input has is known only when the model runs"
    elif channels_in != channels:
        return f"it reads rows of {channels} across an input of {list(dims)}"
    elif sum(d < 0 for d in dims[:-1]) > 1:
        return "more than one dimension of its input is unknown"
    if fused_activation(layer) is None:
        return "its fused activation is not one of ReLU, ReLU6, ReLU1"
    return None


def binary_weights(weights: Array, *, assume_nonzero: bool = False) -> tuple[Array, Array, int] | str:
    """Decomposes weights [O, ...] into ±1 and a magnitude for each output channel.

    All weights of a channel may be zero (a batch norm with gamma 0). The magnitude of such a channel is 0.

    Args:
        assume_nonzero: True to take few zeros in other channels for +1.
    Returns:
        bool [O, ...], true where negative, the magnitudes float32 [O], and the number of zeros taken for +1. If the
        weights are not binary, the reason.
    """
    flat = weights.reshape(weights.shape[0], -1)
    if flat.shape[1] == 0:
        return "its weights are not finite"
    alpha, nonzero, zeros = _magnitudes(flat)
    if not np.all(np.isfinite(alpha)):
        return "its weights are not finite"
    if not np.any(alpha > 0):
        return "its weights are all zero"
    rounding = np.minimum(_STRAIGHT_THROUGH_ROUNDING, _LARGEST_ROUNDING * alpha)
    if np.any(alpha - nonzero > np.maximum(_MAGNITUDE_TOLERANCE * alpha, rounding)):
        return "its weights are not ±alpha in each output channel"
    count = int(zeros[alpha > 0].sum())
    if count and not (assume_nonzero and _are_few(count, weights)):
        return _why_zeros(count, weights)
    rounded = alpha - nonzero > _MAGNITUDE_TOLERANCE * alpha
    if np.any(rounded):
        others = np.maximum(flat.shape[1] - zeros, 1)
        alpha = np.where(rounded, np.abs(flat).sum(axis=1, dtype=np.float64) / others, alpha)
    minus_one: Array = weights < 0 if count else np.signbit(weights)
    return minus_one, alpha.astype(np.float32), count


class UnevenWeights(NamedTuple):
    """Weights of middle ± distance, with a middle and a distance for each output channel."""

    minus_one: Array  # bool [O, ...], true where a weight is the lower one
    distance: Array  # float32 [O]
    middle: Array  # float32 [O]


def uneven_weights(graph: Graph, layer: Op, *, assume_nonzero: bool = False) -> UnevenWeights | None:
    """Decomposes weights that take two values in each output channel, which are not opposite in all channels. None for
    other weights, and for layers with groups, few weights or other obstacles.
    """
    weights = layer_weights(graph, layer)
    if weights is None or weights[0].size < BITS_PER_WORD or why_not_binary(layer, weights) is not None:
        return None
    if weights.shape[-1] != layer.input(facts(layer).data).channels or not np.all(np.isfinite(weights)):
        return None
    flat = weights.reshape(len(weights), -1)
    low, high = flat.min(axis=1).astype(np.float64), flat.max(axis=1).astype(np.float64)
    distance, middle = (high - low) / 2, (high + low) / 2
    off = np.abs(np.abs(flat - middle[:, None]) - distance[:, None]).max(axis=1)
    is_even = not isinstance(binary_weights(weights, assume_nonzero=assume_nonzero), str)
    if is_even or not np.any(distance) or np.any(off > _MAGNITUDE_TOLERANCE * distance + 2.0**-22 * np.abs(middle)):
        return None
    minus_one = (flat < middle[:, None]).reshape(weights.shape)
    return UnevenWeights(minus_one, distance.astype(np.float32), middle.astype(np.float32))


def _are_few(zeros: int, weights: Array) -> bool:
    return zeros <= max(1, _FEW_ZEROS * weights.size)


def _why_zeros(zeros: int, weights: Array) -> str:
    if not _are_few(zeros, weights):
        return f"{zeros_in_words(zeros, weights.size)} (ternary or pruned)"
    counts = "it counts" if zeros == 1 else "they count"
    return f"{zeros_in_words(zeros, weights.size)}; with assume_nonzero {counts} as +1"


def zeros_in_words(zeros: int, weights: int) -> str:
    """Says how many of a layer's weights are 0."""
    return f"{zeros:,} of its {weights:,} weights {'is' if zeros == 1 else 'are'} 0"


def _magnitudes(flat: Array) -> tuple[Array, Array, Array]:
    """Returns the largest and the smallest nonzero magnitude of each channel, float32 [O], and the number of its zeros,
    int [O]. The smallest one is infinity if all weights of the channel are zero.
    """
    blocks = []
    for block in np.array_split(flat, max(min(len(flat), flat.size // _BLOCK), 1)):
        magnitudes = np.abs(block)
        is_zero = magnitudes == 0
        nonzero = np.where(is_zero, np.float32(np.inf), magnitudes).min(axis=1)
        blocks.append((magnitudes.max(axis=1), nonzero, is_zero.sum(axis=1)))
    alpha, nonzero, zeros = map(np.concatenate, zip(*blocks, strict=True))
    return alpha, nonzero, zeros


def ternary_weights(weights: Array) -> tuple[Array, Array] | None:
    """Decomposes weights [O, ...] into levels -1, 0, 1 and a magnitude for each output channel.

    Returns:
        int8 [O, ...] and float32 [O], with magnitude 1 for channels of zeros; None if the weights are not ternary.
    """
    if weights.size == 0 or not np.all(np.isfinite(weights)):
        return None
    flat = weights.reshape(weights.shape[0], -1)
    alpha = np.abs(flat).max(axis=1)
    alpha[alpha == 0] = 1
    levels = np.rint(flat / alpha[:, None])
    if np.any(np.abs(flat - levels * alpha[:, None]) > _MAGNITUDE_TOLERANCE * alpha[:, None]):
        return None
    return levels.astype(np.int8).reshape(weights.shape), alpha.astype(np.float32)


@dataclass(frozen=True)
class PackedWeights:
    """The weights of a convolution, ±alpha and 0, as LitebnnUnpackWeights reads them (docs/ops.md)."""

    signs: Array  # int32 [rows, words], a row for each output channel; a single row for a depthwise convolution
    scales: Array  # float32 [output channels]
    zeros: Array | None  # as the signs, with 1 bits where weights are 0; None if only whole channels are zero

    @property
    def arrays(self) -> dict[str, Array]:
        """The op's inputs in order, with their names."""
        found = {"signs": self.signs, "scales": self.scales}
        return found if self.zeros is None else {**found, "zeros": self.zeros}

    def saved_bytes(self, count: int, type: str) -> int:
        """The bytes, approximately, by which a file gets smaller that stores these instead of `count` weights."""
        return count * bits_of_type(type) // 8 - _OP_BYTES - sum(array.nbytes for array in self.arrays.values())


def packed_weights(layer: Op, weights: Array) -> PackedWeights | None:
    """Packs the weights of a convolution; None if a channel has other values than -alpha, 0 and alpha."""
    axis = 3 if layer.name == "DEPTHWISE_CONV_2D" else 0
    channels_first = np.moveaxis(weights, axis, 0)
    parts = ternary_weights(channels_first[:1]) and ternary_weights(channels_first)  # most weights fail at the first
    if not parts:
        return None
    levels, alpha = parts
    is_empty = ~np.any(levels.reshape(len(levels), -1), axis=1)
    rows = np.moveaxis(levels, 0, axis).reshape(len(levels) if axis == 0 else 1, -1)
    zeros = rows == 0
    only_whole = np.count_nonzero(zeros) == np.count_nonzero(is_empty) * (levels.size // len(levels))
    scales = np.where(is_empty, 0, alpha).astype(np.float32)
    return PackedWeights(pack_bits(rows < 0), scales, None if only_whole else pack_bits(zeros))


def bias_values(bias: Tensor | None, channels: int) -> Array | None:
    """Returns the float32 [channels] of a layer's bias, zeros if it has none; None if the bias is not constant.

    Converters also write biases [1, 1, 1, channels]; the runtime only uses the number of values.
    """
    if bias is None:
        return np.zeros(channels, np.float32)
    array = floats(bias)
    if array is None or array.shape not in ((channels,), (1, 1, 1, channels)):
        return None
    return array.reshape(channels)


def layer_bias(graph: Graph, layer: Op, channels: int) -> Array | None:
    """Returns the float32 [channels] of a layer's bias, dequantized for a quantized layer."""
    weights, *indices = facts(layer).constants
    bias = layer.optional(indices[0]) if indices else None
    if bias is None or bias.type == "FLOAT32":
        if bias is None or bias.is_constant:
            return bias_values(bias, channels)
        values = evaluate(graph, bias)
        return values if values is not None and values.shape == (channels,) else None
    counts, scale = bias.array, bias_scale(layer.input(facts(layer).data), layer.input(weights), (channels,))
    if counts is None or counts.dtype not in (np.int32, np.int64) or counts.shape != (channels,) or scale is None:
        return None
    return (counts * scale).astype(np.float32)


def clamps_no_more(layer: Op) -> bool:
    """True if the quantized output of a layer cannot represent numbers beyond the limits of the fused activation. The
    activation then has no effect.
    """
    activation = fused_activation(layer)
    return activation is not None and ends_within(layer.output, *ACTIVATION_RANGES[activation])


@dataclass(frozen=True)
class BinaryParts:
    """BinaryParts has the parameters of a layer whose weights are ±alpha. If its input is signs, the layer becomes
    binary. Output channels O come first.
    """

    weights: Array  # float32 [O, ..., channels]; zeros that are taken for +1 are +alpha
    minus_one: Array  # bool of the same shape, true where a weight is negative
    alpha: Array  # float32 [O], the weights' magnitudes
    bias: Array  # float32 [O]
    zeros: int  # the number of weights that are 0 and taken for +1


def binary_parts(graph: Graph, layer: Op, *, assume_nonzero: bool = False) -> BinaryParts | str:
    """Returns the parameters of a layer, or the reason why it cannot be binary. `binary_weights` describes
    `assume_nonzero`.
    """
    weights = layer_weights(graph, layer)
    if weights is None:
        return not_float(graph, layer)
    parts = why_not_binary(layer, weights) or binary_weights(weights, assume_nonzero=assume_nonzero)
    if isinstance(parts, str):
        return parts
    minus_one, alpha, zeros = parts
    if zeros:
        weights = np.where(weights == 0, alpha.reshape(-1, *[1] * (weights.ndim - 1)), weights)
    bias = layer_bias(graph, layer, weights.shape[0])
    if bias is not None:
        return BinaryParts(weights, minus_one, alpha, bias, zeros)
    given = layer.input(facts(layer).constants[1])
    wanted = "not a float constant" if given.type == "FLOAT32" else "no constant, or none of its grid"
    return f'its bias "{given.name}" is {wanted}'
