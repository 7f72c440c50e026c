"""MUL, DIV, ADD, SUB, NEG, ReLU, ReLU6 and ReLU1 behind an LceBconv2d -> its multiplier, bias and fused activation.

The op computes clamp(dot) · multiplier + bias, so an activation behind a multiplier or a bias can only be fused where
it does the same to every dot product that can occur.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from litebnn.contract import ACTIVATION_RANGES, Activation, flip_channels_out
from litebnn.flatbuffer import Array, Graph, Op, constant
from litebnn.passes.affine import affine_of, is_strictness, next_level
from litebnn.passes.common import (
    ACTIVATION_OPS,
    bconv_options,
    channel_values,
    channels_per_group,
    derived,
    dot_max,
    is_float_bconv,
    set_bconv_options,
    split_activation,
)
from litebnn.passes.notes import Notes

_ARITHMETIC = ("MUL", "DIV", "ADD", "SUB", "NEG")


def fuse_post_activation(graph: Graph, notes: Notes) -> bool:
    changed = False
    for op in list(graph.ops):
        if not is_float_bconv(op):
            continue
        while (follower := graph.sole_consumer(op.output)) is not None:
            fuse = _fuse_arithmetic if follower.name in _ARITHMETIC else _fuse_activation
            if not fuse(graph, op, follower, notes):
                break
            notes.fused(op, follower.name)
            graph.remove(follower)
            graph.set_output(op, follower.output)
            changed = True
    return changed


def _fuse_arithmetic(graph: Graph, op: Op, follower: Op, notes: Notes) -> bool:
    affine = affine_of(follower, op.output.channels, left=follower.inputs[0] is op.output)
    if affine is None or follower.output.dims != op.output.dims:
        return False
    scale, shift = affine
    with np.errstate(all="ignore"):
        multiplier = channel_values(op, 2, 1.0).astype(np.float64) * scale
        bias = channel_values(op, 3, 0.0).astype(np.float64) * scale
        bias = next_level(bias.astype(np.float32), up=False) if is_strictness(shift) else bias + shift
        rounded = multiplier.astype(np.float32), bias.astype(np.float32)
    if not all(np.all(np.isfinite(values)) for values in rounded):
        return False
    split_activation(graph, follower)
    set_channel_values(graph, op, *rounded)
    return True


def set_channel_values(graph: Graph, op: Op, multiplier: Array, bias: Array) -> None:
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


def _fuse_activation(graph: Graph, op: Op, follower: Op, notes: Notes) -> bool:
    if follower.name not in ACTIVATION_OPS:
        return False
    options = bconv_options(op)
    fused = clamp_as_fused(
        channel_values(op, 2, 1.0),
        channel_values(op, 3, 0.0),
        dot_max(op),
        Activation(options.fused_activation_function),
        ACTIVATION_OPS[follower.name],
    )
    if fused is None:
        notes.left_alone(op, f"{follower.name} behind a scale or a bias cannot be fused: put it before the batch norm")
        return False
    activation, multiplier, bias, flip = fused
    set_bconv_options(op, replace(options, fused_activation_function=activation))
    negate_channels_out(graph, op, flip)
    set_channel_values(graph, op, multiplier, bias)
    return True


def clamp_as_fused(
    multiplier: Array, bias: Array, dot_max: int, before: Activation, activation: Activation
) -> tuple[Activation, Array, Array, Array] | None:
    """Expresses activation(before(dot) · multiplier + bias) as another before(dot) · multiplier + bias.

    Args:
        multiplier, bias: float32 [O].
        dot_max: the dot product lies in [-dot_max, dot_max].
    Returns:
        The activation on the dot product, multiplier, bias, and bool [O]: the channels whose filter is to be negated.
        None where that cannot be done exactly.
    """
    low, high = ACTIVATION_RANGES[activation]
    dot_low, dot_high = (float(np.clip(bound, -dot_max, dot_max)) for bound in ACTIVATION_RANGES[before])
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
