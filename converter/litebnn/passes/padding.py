"""Explicit padding in front of a convolution -> its SAME padding, where the two are the same."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from litebnn.contract import BCONV_2D, Padding, PadValues
from litebnn.flatbuffer import Array, Graph, Tensor
from litebnn.passes.common import bconv_options, bits_of, set_bconv_options, uniform
from litebnn.passes.notes import Notes


def same_padding(size: int, taps: int, stride: int, dilation: int) -> tuple[int, int]:
    """(before, output size) of TensorFlow's SAME padding along one axis."""
    output = -(-size // stride)
    total = max((output - 1) * stride + (taps - 1) * dilation + 1 - size, 0)
    return total // 2, output


def is_same_padding(
    amounts: Array, unpadded: Tensor, taps: tuple[int, int], strides: tuple[int, int], dilations: tuple[int, int]
) -> bool:
    """Whether padding an NHWC tensor by `amounts` ([4, 2]) and then convolving VALID is a SAME convolution."""
    if amounts.shape != (4, 2) or np.any(amounts[[0, 3]] != 0) or np.any(amounts < 0):
        return False
    for axis in (0, 1):
        size, stride, reach = unpadded.dims[axis + 1], strides[axis], (taps[axis] - 1) * dilations[axis]
        before, after = (int(a) for a in amounts[axis + 1])
        if size < 0:
            # Of an unknown size the padding is known only where it does not depend on it.
            if stride != 1 or (before, before + after) != (reach // 2, reach):
                return False
            continue
        expected, output = same_padding(size, taps[axis], stride, dilations[axis])
        if before != expected or (size + before + after - reach - 1) // stride + 1 != output:
            return False
    return True


def absorb_one_padding(graph: Graph, notes: Notes) -> bool:
    """VALID LceBconv2d of bits padded with +1 -> SAME LceBconv2d that pads with ones."""
    changed = False
    for op in graph.ops:
        if op.name != BCONV_2D:
            continue
        pad, options = graph.producer(op.input(0)), bconv_options(op)
        if pad is None or pad.name != "PADV2" or options.padding != Padding.VALID or uniform(pad.input(2)) != 0.0:
            continue
        amounts = pad.input(1).array
        assert amounts is not None
        if not is_same_padding(
            amounts,
            pad.input(0),
            (op.input(1).shape[1], op.input(1).shape[2]),
            (options.stride_height, options.stride_width),
            (options.dilation_height_factor, options.dilation_width_factor),
        ):
            notes.left_alone(op, f"one-padding {amounts[1:3].tolist()} is not SAME: kept as a PADV2 of the bits")
            continue
        set_bconv_options(op, replace(options, padding=Padding.SAME, pad_values=PadValues.ONE))
        graph.set_input(op, 0, pad.input(0))
        changed = True
    return changed


def absorb_zero_padding(graph: Graph, notes: Notes) -> bool:
    """VALID CONV_2D of a sign padded with 0 -> SAME CONV_2D."""
    changed = False
    for op in graph.ops:
        if op.name != "CONV_2D" or op.options.padding != Padding.VALID:
            continue
        pad = graph.producer(op.input(0))
        if pad is None or pad.name not in ("PAD", "PADV2") or bits_of(graph, pad.input(0)) is None:
            continue
        amounts, value = pad.input(1).array, uniform(pad.optional(2)) if pad.name == "PADV2" else 0.0
        if amounts is None or value != 0.0:
            notes.left_alone(op, "the padding of its input is neither 0 nor ±1, or not constant")
            continue
        o = op.options
        if not is_same_padding(
            amounts,
            pad.input(0),
            (op.input(1).shape[1], op.input(1).shape[2]),
            (o.strideH, o.strideW),
            (o.dilationHFactor, o.dilationWFactor),
        ):
            notes.left_alone(op, f"zero padding {amounts[1:3].tolist()} is not SAME, and 0 is no ±1")
            continue
        o.padding = int(Padding.SAME)
        graph.set_input(op, 0, pad.input(0))
        changed = True
    return changed
