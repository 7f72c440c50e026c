"""Replaces the forms of LceBconv2d that Larq's runtime refuses by forms that it reads.

Larq's runtime refuses packed or int8 output and fused activations in ops that pad with zeros. Therefore such an op is
changed to write plain floats, and separate ops compute what it had fused.

The runtime also refuses explicit padding, so a separate op pads the bits. Bits cannot represent the padding 0: its
result is the mean of the results for padding with +1 and with -1.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from litebnn.contract import LCE_BCONV_2D, LCE_QUANTIZE, Activation, BConv2DOptions, Padding
from litebnn.graph import Array, Graph, Op, Tensor, builtin_op, constant, derived, like
from litebnn.rules.build.bconv import (
    bconv_options,
    dot_max,
    multiplier_and_bias,
    set_bconv_options,
    set_multiplier_and_bias,
)
from litebnn.rules.build.int8 import quantize_op
from litebnn.rules.build.notes import Notes, each
from litebnn.rules.build.ops import OP_OF_ACTIVATION, custom_op
from litebnn.rules.build.signs import pad_packed


@each(LCE_BCONV_2D)
def write_for_larq(graph: Graph, op: Op, notes: Notes) -> bool:
    splits = _split_zero_padded_output(graph, op)
    return _lower_explicit_padding(graph, op) or splits


def _split_zero_padded_output(graph: Graph, op: Op) -> bool:
    options = bconv_options(op)
    if not options.pads_zeros:
        return False
    written = op.output.type
    if written == "INT32":
        _split_bits(graph, op)
    elif written == "INT8":
        result = _write_floats(graph, op, op.output.dims)
        graph.insert(quantize_op(op.output, result), after=op)
    splits = not _is_plain(op)
    if splits:
        _split_arithmetic(graph, op)
    return written in ("INT32", "INT8") or splits


def _is_plain(op: Op) -> bool:
    """True if an op has no activation, and its other parameters fit Larq's runtime. With explicit padding by zeros, the
    op becomes two: half the result for padding with +1, plus half the result for -1. This sum must be exact.
    """
    options = bconv_options(op)
    if options.fused_activation_function != Activation.NONE:
        return False
    multiplier, bias = multiplier_and_bias(op)
    return options.explicit_padding is None or bool(np.all(multiplier == 1) and np.all(bias == np.rint(bias)))


def _write_floats(graph: Graph, op: Op, dims: tuple[int, ...]) -> Tensor:
    """Makes the op write a new float tensor, and returns the op's former output."""
    result = op.output
    graph.set_output(op, like(result, derived(result.name, "/float"), type="FLOAT32", dims=dims))
    return result


def _split_bits(graph: Graph, op: Op) -> None:
    """Replaces the comparison acc > threshold by the sign of dot + 2 · threshold - dot_max. In an LceBconv2d, acc is
    the number of differing bits, and dot = dot_max - 2 · acc.
    """
    thresholds = op.input(4).array
    assert thresholds is not None
    most = dot_max(op)
    bias = 2.0 * np.clip(thresholds.astype(np.int64), -1, most) - most
    bits = _write_floats(graph, op, (*op.output.dims[:-1], len(thresholds)))
    graph.set_input(op, 4, None)
    set_multiplier_and_bias(graph, op, np.ones(len(thresholds)), bias)
    set_bconv_options(op, replace(bconv_options(op), fused_activation_function=Activation.NONE))
    graph.insert(custom_op(LCE_QUANTIZE, [op.output], bits), after=op)


def _split_arithmetic(graph: Graph, op: Op) -> None:
    """Replaces the fused clamp, multiplier and bias of an LceBconv2d by separate ops: a clamp, a MUL and an ADD."""
    activation = Activation(bconv_options(op).fused_activation_function)
    multiplier, bias = multiplier_and_bias(op)
    set_multiplier_and_bias(graph, op, np.ones_like(multiplier), np.zeros_like(bias))
    set_bconv_options(op, replace(bconv_options(op), fused_activation_function=Activation.NONE))
    result = _write_floats(graph, op, op.output.dims)
    dot, scaled = op.output, like(result, derived(result.name, "/scaled"))
    followers = []
    if activation != Activation.NONE:
        clamped = like(result, derived(result.name, "/clamped"))
        followers, dot = [builtin_op(OP_OF_ACTIVATION[activation], [dot], clamped)], clamped
    followers.append(builtin_op("MUL", [dot, _channels(scaled, multiplier)], scaled))
    followers.append(builtin_op("ADD", [scaled, _channels(result, bias)], result))
    for follower in reversed(followers):
        graph.insert(follower, after=op)


def _channels(tensor: Tensor, values: Array) -> Tensor:
    return constant(derived(tensor.name, "/channels"), values.astype(np.float32))


def _lower_explicit_padding(graph: Graph, op: Op) -> bool:
    options = bconv_options(op)
    if options.explicit_padding is None:
        return False
    amounts, bits, channels = np.asarray(options.explicit_padding), op.input(0), options.channels_in
    valid = replace(options, padding=Padding.VALID, pad_top=None, pad_bottom=None, pad_left=None, pad_right=None)
    set_bconv_options(op, valid)
    graph.set_input(op, 0, pad_packed(graph, bits, channels, amounts, 1, before=op))
    if options.pads_zeros:
        _add_halves(graph, op, pad_packed(graph, bits, channels, amounts, -1, before=op), valid)
    return True


def _add_halves(graph: Graph, op: Op, other_bits: Tensor, options: BConv2DOptions) -> None:
    """Replaces an LceBconv2d by the sum of two, each with half its multiplier and bias. One of the two reads the same
    bits as before, the other reads `other_bits`.

    The sum is exact, because `_split_zero_padded_output` has left a multiplier of 1 and an integer bias.
    """
    result = op.output
    set_multiplier_and_bias(graph, op, *(values / 2 for values in multiplier_and_bias(op)))
    inputs = [other_bits, *op.inputs[1:]]
    other = custom_op(LCE_BCONV_2D, inputs, like(result, derived(result.name, "/minus")), options)
    graph.set_output(op, like(result, derived(result.name, "/plus")))
    graph.insert(other, after=op)
    graph.insert(builtin_op("ADD", [op.output, other.output], result), after=other)
