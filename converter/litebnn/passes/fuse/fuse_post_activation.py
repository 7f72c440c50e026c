"""MUL, DIV, ADD, SUB, NEG, ReLU, ReLU6 and ReLU1 behind an LceBconv2d -> its multiplier, bias and fused activation.

The op computes clamp(dot) · multiplier + bias, so an activation behind a multiplier or a bias can only be fused where
it does the same to every dot product that can occur.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from litebnn.contract import Activation
from litebnn.graph import Graph, Op, facts
from litebnn.rewriting.affine import affine_of, is_strictness, next_level
from litebnn.rewriting.bconv import (
    bconv_options,
    channel_values,
    dot_max,
    is_float_bconv,
    negate_channels_out,
    set_bconv_options,
    set_channel_values,
)
from litebnn.rewriting.build import split_activation
from litebnn.rewriting.clamp import clamp_as_fused
from litebnn.rewriting.notes import Notes


def fuse_post_activation(graph: Graph, notes: Notes) -> bool:
    changed = False
    for op in list(graph.ops):
        if not is_float_bconv(op):
            continue
        while (follower := graph.sole_consumer(op.output)) is not None:
            fuse = _fuse_arithmetic if facts(follower).clamp is None else _fuse_activation
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


def _fuse_activation(graph: Graph, op: Op, follower: Op, notes: Notes) -> bool:
    clamp = facts(follower).clamp
    if clamp is None:
        return False
    options = bconv_options(op)
    fused = clamp_as_fused(
        channel_values(op, 2, 1.0),
        channel_values(op, 3, 0.0),
        dot_max(op),
        Activation(options.fused_activation_function),
        clamp,
    )
    if fused is None:
        notes.left_alone(op, f"{follower.name} behind a scale or a bias cannot be fused: put it before the batch norm")
        return False
    activation, multiplier, bias, flip = fused
    set_bconv_options(op, replace(options, fused_activation_function=activation))
    negate_channels_out(graph, op, flip)
    set_channel_values(graph, op, multiplier, bias)
    return True
