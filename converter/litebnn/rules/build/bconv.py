"""Builds an `LceBconv2d`, and reads or changes its parameters."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from litebnn.analysis.affine import works_on_channels
from litebnn.analysis.layouts import INTERLEAVING, channels_moved
from litebnn.analysis.match import first_computed, floats
from litebnn.analysis.padding import is_same_padding, layer_padding
from litebnn.analysis.walks import MOST_OPS
from litebnn.contract import (
    ACTIVATION_RANGES,
    BITS_PER_WORD,
    LCE_BCONV_2D,
    Activation,
    BConv2DOptions,
    Padding,
    PadValues,
    encode_options,
    flip_channels_out,
    output_thresholds,
    pack_bits,
)
from litebnn.graph import Array, Graph, Op, Tensor, constant, derived, facts, like, packed_words
from litebnn.rules.build.notes import Notes
from litebnn.rules.build.ops import custom_op, reshape_op

_ODD_CHANNELS = "zero padding with an odd number of channels cannot write bits: pad with ones"


def bconv_of(
    bits: Tensor, output: Tensor, name: str, minus_one: Array, alpha: Array, bias: Array, options: BConv2DOptions
) -> Op:
    """Makes the LceBconv2d with a given filter of ±1.

    Args:
        name: prefix for the constants' names.
        minus_one: bool [O, H, W, I], true where the filter is -1.
        alpha, bias: float32 [O], the multiplier and the bias of each output channel.
    """
    inputs: list[Tensor | None] = [
        bits,
        constant(name, pack_bits(minus_one)),
        constant(derived(name, "/multiplier"), alpha),
        constant(derived(name, "/bias"), bias),
        None,
    ]
    return custom_op(LCE_BCONV_2D, inputs, output, options)


def options_of_conv(conv: Op, bits: Tensor, taps: tuple[int, int], padding: Array) -> BConv2DOptions:
    """Returns the options of the LceBconv2d that replaces a CONV_2D.

    Args:
        bits: the NHWC input of the LceBconv2d, before all padding.
        taps: height and width of the filter.
        padding: int [2, 2], the zeros that a preceding op adds.
    """
    options = BConv2DOptions(
        channels_in=conv.input(0).channels,
        dilation_height_factor=conv.options.dilation_h_factor,
        dilation_width_factor=conv.options.dilation_w_factor,
        stride_height=conv.options.stride_h,
        stride_width=conv.options.stride_w,
    )
    if np.any(padding):
        own = layer_padding(conv)
        assert own is not None
        return padded_options(options, bits, taps, padding + np.asarray(own), PadValues.ZERO)
    # A 1×1 filter never reads padding, so its padding need not be zeros. An LceBconv2d that pads with zeros can fuse
    # less.
    if taps == (1, 1) or conv.options.padding == Padding.VALID:
        return options
    return replace(options, padding=Padding.SAME, pad_values=PadValues.ZERO)


def replace_dense(graph: Graph, dense: Op, bits: Tensor, name: str, minus_one: Array, alpha: Array, bias: Array) -> Op:
    """Replaces a dense layer by a 1×1 LceBconv2d between reshapes, and returns the LceBconv2d.

    Args:
        bits: the packed input of the layer, [..., words of its channels].
        name: prefix for the constants' names.
        minus_one: bool [O, channels], true where a weight is -1.
        alpha, bias: float32 [O], the multiplier and the bias of each output channel.
    """
    channels_out, channels_in = minus_one.shape
    rows = bits.dims[:-1]
    count = -1 if any(d < 0 for d in rows) else int(np.prod(rows, dtype=np.int64))
    pixels = like(bits, derived(dense.output.name, "/input"), dims=(count, 1, 1, packed_words(channels_in)))
    result = like(dense.output, derived(dense.output.name, "/pixels"), dims=(count, 1, 1, channels_out))
    filter_minus_one = minus_one.reshape(channels_out, 1, 1, channels_in)
    options = BConv2DOptions(channels_in=channels_in)
    bconv = bconv_of(pixels, result, name, filter_minus_one, alpha, bias, options)
    graph.insert(reshape_op(bits, pixels), before=dense)
    graph.insert(bconv, before=dense)
    graph.replace(dense, reshape_op(result, dense.output))
    return bconv


def is_float_bconv(op: Op | None) -> bool:
    return op is not None and op.name == LCE_BCONV_2D and op.output.type == "FLOAT32"


def bconv_options(op: Op) -> BConv2DOptions:
    return BConv2DOptions.decode(op.custom_options)


def set_bconv_options(op: Op, options: BConv2DOptions) -> None:
    op.custom_options = encode_options(options)


def padded_options(
    options: BConv2DOptions, unpadded: Tensor, taps: tuple[int, ...], amounts: Array, values: PadValues
) -> BConv2DOptions:
    """Returns the options with the padding included: SAME if SAME pads by these amounts, otherwise explicit padding.

    Args:
        options: the options of an op with VALID padding.
        unpadded: the op's NHWC input before the padding.
        taps: height and width of the filter.
        amounts: int [2, 2], the padding of height and width.
    """
    if not np.any(amounts):
        return options
    if is_same_padding(amounts, unpadded.dims[1:3], taps, options.strides, options.dilations):
        return replace(options, padding=Padding.SAME, pad_values=values)
    (top, bottom), (left, right) = amounts.tolist()
    return replace(
        options, padding=None, pad_values=values, pad_top=top, pad_bottom=bottom, pad_left=left, pad_right=right
    )


def channels_per_group(op: Op) -> int:
    """Returns the number of channels that a filter of this `LceBconv2d` reads at each tap. Channels that only fill
    up words are not counted.
    """
    channels_in = bconv_options(op).channels_in
    words = op.input(1).shape[3]
    return min(channels_in, words * BITS_PER_WORD)


def dot_max(op: Op) -> int:
    """Returns the largest dot product of an `LceBconv2d`: taps times channels per group."""
    _, height, width, _ = op.input(1).shape
    return height * width * channels_per_group(op)


def multiplier_and_bias(op: Op) -> tuple[Array, Array]:
    """Returns the multiplier and bias, each float32 [O], of an `LceBconv2d` without packed output."""
    given, channels = (floats(op.optional(2)), floats(op.optional(3))), op.input(1).shape[0]
    multiplier, bias = (
        np.full(channels, v, np.float32) if g is None else g for g, v in zip(given, (1, 0), strict=True)
    )
    return multiplier, bias


def set_multiplier_and_bias(graph: Graph, op: Op, multiplier: Array, bias: Array) -> None:
    name = op.input(1).name
    graph.set_input(op, 2, constant(derived(name, "/multiplier"), multiplier.astype(np.float32)))
    graph.set_input(op, 3, constant(derived(name, "/bias"), bias.astype(np.float32)))


def negate_channels_out(graph: Graph, op: Op, flip: Array) -> None:
    """Negates the filter of the output channels where `flip` is true."""
    words = op.input(1).array
    assert words is not None
    if np.any(flip):
        flipped = flip_channels_out(words, channels_per_group(op), flip)
        graph.set_input(op, 1, constant(op.input(1).name, flipped))


def can_pack(op: Op, notes: Notes) -> bool:
    """True if the LceBconv2d can write the signs of its outputs as bits, by comparing with thresholds."""
    if bconv_options(op).pads_zeros and channels_per_group(op) % 2:
        return notes.left_alone(op, _ODD_CHANNELS)
    return bool(np.all(np.isfinite(multiplier_and_bias(op))))


def set_output_thresholds(graph: Graph, op: Op, multiplier: Array, bias: Array) -> None:
    """Gives an LceBconv2d the thresholds by which it computes the packed signs of its outputs. An output is clamp(dot
    product) · multiplier + bias. The caller sets the tensor for the signs as the op's output.
    """
    activation = Activation(bconv_options(op).fused_activation_function)
    thresholds, flip = output_thresholds(multiplier, bias, dot_max(op), activation)
    negate_channels_out(graph, op, flip)
    graph.set_input(op, 2, None)
    graph.set_input(op, 3, None)
    graph.set_input(op, 4, constant(derived(op.input(1).name, "/threshold"), thresholds))


def channels_upstream(op: Op) -> list[Tensor]:
    """For an op that computes each output element from one input element, returns the inputs with these elements; empty
    for other ops.

    A concatenation is such an op, because it only moves elements. A batch norm is one too, because it computes each
    element from its old value and its channel.
    """
    if op.name in INTERLEAVING:
        return channels_moved(op)
    x = first_computed(op)
    return [x] if x is not None and works_on_channels(op, x) else []


def is_of_binary_convs(
    graph: Graph, tensor: Tensor, upstream: Callable[[Op], list[Tensor]] = channels_upstream
) -> bool:
    """`is_of_layers` for binary convolutions."""
    return is_of_layers(graph, tensor, lambda op: op.name == LCE_BCONV_2D, upstream)


def is_of_layers(
    graph: Graph, tensor: Tensor, is_layer: Callable[[Op], bool], upstream: Callable[[Op], list[Tensor]]
) -> bool:
    """True if all elements of a float tensor are outputs of certain layers, and nothing else reads these outputs.

    Args:
        is_layer: True for these layers.
        upstream: the function that returns the inputs from which an op takes its elements. It decides which ops may be
            between the layers and the tensor.
    """
    waiting, between = [tensor], 0
    while waiting:
        tensor = waiting.pop()
        op = graph.producer(tensor)
        if op is None or tensor.type != "FLOAT32" or graph.sole_consumer(tensor) is None:
            return False
        if not is_layer(op):
            sources, between = upstream(op), between + 1
            if not sources or between > MOST_OPS:
                return False
            waiting.extend(sources)
    return True


def takes_affine(graph: Graph, tensor: Tensor) -> bool:
    """True if an LceBconv2d computes `tensor`, directly or followed by ops that an affine op (x · scale + shift) can be
    moved across.

    The LceBconv2d absorbs affine ops one by one. It must not absorb the threshold of a strict comparison. For x > 3,
    for example, the threshold is the next float above 3. The sum of this float and the bias could be rounded, and the
    threshold would be 3 again.
    """
    op = graph.producer(tensor)
    while op is not None and facts(op).reshapes and graph.sole_consumer(tensor) is not None:
        if op.input(0).channels != tensor.channels:
            return False
        tensor = op.input(0)
        op = graph.producer(tensor)
    direct = is_float_bconv(op) or (op is not None and op.name in INTERLEAVING)
    return direct and is_of_binary_convs(graph, tensor)


def with_clamp(op: Op, activation: Activation) -> tuple[Activation, Array, Array, Array] | None:
    """Finds the parameters with which a float `LceBconv2d` also computes the activation that follows it.

    An LceBconv2d applies its only activation to the dot product, before multiplier and bias.

    Returns:
        The new activation on the dot product, multiplier and bias float32 [O], and bool [O], true where the filter must
        be negated. None if no exact form exists.
    """
    before, (multiplier, bias) = Activation(bconv_options(op).fused_activation_function), multiplier_and_bias(op)
    low, high = ACTIVATION_RANGES[activation]
    dot_low, dot_high = (float(np.clip(bound, -dot_max(op), dot_max(op))) for bound in ACTIVATION_RANGES[before])
    fixed = multiplier == 0
    bias = np.where(fixed, np.clip(bias, low, high), bias).astype(np.float32)
    ends = [dot * multiplier.astype(np.float64) + bias for dot in (dot_low, dot_high)]
    binds_low = np.any(np.minimum(*ends)[~fixed] < low)
    binds_high = np.any(np.maximum(*ends)[~fixed] > high)
    keep = np.zeros(multiplier.shape, np.bool_)
    if not binds_low and not binds_high:
        return before, multiplier, bias, keep
    if np.any(bias[~fixed] != 0):
        return None
    unit = bool(np.all(np.abs(multiplier[~fixed]) == 1))
    if before == Activation.RELU and activation == Activation.RELU6 and unit and np.all(multiplier >= 0):
        return Activation.RELU6, multiplier, bias, keep
    if before != Activation.NONE:
        return None
    magnitude = np.abs(multiplier)
    if low == 0 and not binds_high:
        return Activation.RELU, magnitude, bias, multiplier < 0
    return (activation, magnitude, bias, multiplier < 0) if unit else None
