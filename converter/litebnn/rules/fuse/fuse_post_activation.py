"""A MUL, DIV, ADD, SUB, NEG, ReLU, ReLU6 or ReLU1 after an LceBconv2d is fused into the multiplier, bias or activation
of the LceBconv2d.

An LceBconv2d computes clamp(dot) · multiplier + bias. An activation after a multiplier or a bias is fused if a clamp of
the dot product has the same effect for all possible values.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from litebnn.analysis.affine import affine_of
from litebnn.contract import LCE_BCONV_2D, Activation
from litebnn.graph import Graph, Op, facts
from litebnn.rules.build.bconv import (
    bconv_options,
    is_float_bconv,
    multiplier_and_bias,
    negate_channels_out,
    set_bconv_options,
    set_multiplier_and_bias,
    with_clamp,
)
from litebnn.rules.build.notes import Notes, each
from litebnn.rules.build.ops import split_activation

_CANNOT_BE_FUSED = "behind a scale or a bias cannot be fused: put it before the batch norm"


@each(LCE_BCONV_2D)
def fuse_post_activation(graph: Graph, op: Op, notes: Notes) -> bool:
    if not is_float_bconv(op):
        return False
    changed = False
    while (follower := graph.sole_consumer(op.output)) is not None:
        clamp = facts(follower).clamp
        if not (_fuse_arithmetic(graph, op, follower) if clamp is None else _fuse_clamp(graph, op, clamp)):
            if clamp is not None:
                notes.left_alone(op, f"{follower.name} {_CANNOT_BE_FUSED}")
            break
        notes.fused(op, follower.name)
        graph.remove(follower)
        graph.set_output(op, follower.output)
        changed = True
    return changed


def _fuse_arithmetic(graph: Graph, op: Op, follower: Op) -> bool:
    affine = affine_of(follower, op.output.channels, left=follower.inputs[0] is op.output)
    if affine is None or follower.output.dims != op.output.dims:
        return False
    scale, shift = affine
    with np.errstate(all="ignore"):
        multiplier, bias = (values.astype(np.float64) * scale for values in multiplier_and_bias(op))
        total = bias + shift
        rounded = multiplier.astype(np.float32), total.astype(np.float32)
    if not all(np.all(np.isfinite(values)) for values in rounded):
        return False
    split_activation(graph, follower)
    set_multiplier_and_bias(graph, op, *rounded)
    return True


def _fuse_clamp(graph: Graph, op: Op, clamp: Activation) -> bool:
    fused = with_clamp(op, clamp)
    if fused is None:
        return False
    activation, multiplier, bias, flip = fused
    set_bconv_options(op, replace(bconv_options(op), fused_activation_function=activation))
    negate_channels_out(graph, op, flip)
    set_multiplier_and_bias(graph, op, multiplier, bias)
    return True
