"""Ops that pack the signs of a tensor with a threshold."""

from __future__ import annotations

import numpy as np

from litebnn.analysis.affine import next_level
from litebnn.analysis.match import THRESHOLD
from litebnn.analysis.thresholds import Threshold
from litebnn.build.ops import custom_op, packed_like
from litebnn.contract import LCE_QUANTIZE
from litebnn.graph import Graph, Op, OpCode, Options, Tensor, builtin_op, constant, derived, like


def sign_op(x: Tensor, bits: Tensor, threshold: Threshold) -> Op:
    """The op that packs the signs of a tensor with that threshold."""
    if threshold.is_plain:
        return custom_op(LCE_QUANTIZE, [x], bits)
    return Op(OpCode(THRESHOLD), [x], [bits], Options(threshold=threshold))


def pack_signs(graph: Graph, source: Tensor, name: str, threshold: Threshold | None = None, *, before: Op) -> Tensor:
    """Inserts the op that packs the signs of `source`, and returns its output."""
    return graph.insert(sign_op(source, packed_like(source, name), threshold or Threshold()), before=before).output


def difference(graph: Graph, x: Tensor, threshold: Threshold, *, before: Op) -> Tensor:
    """Inserts the difference whose LceQuantize is the sign of x with a threshold, and returns it.

    The library fuses a scale and an addition for each channel into the packing.
    """
    name, falls, is_constant = threshold.name, threshold.falls, np.isinf(threshold.level)
    level = threshold.level.reshape(()) if threshold.level.size == 1 else threshold.level
    below = next_level(level, up=False)
    if threshold.subtracts:
        sides = (constant(threshold.number, below), x) if np.any(falls) else (x, constant(threshold.number, level))
        return graph.insert(builtin_op("SUB", sides, like(x, name)), before=before).output
    addends = np.where(falls, below, np.float32(0) - level)
    if np.any(is_constant) or np.any(falls):
        directions = np.where(is_constant, 0, np.where(falls, -1, 1)).astype(np.float32)
        addends = np.where(is_constant, np.where((level < 0) != falls, np.float32(1), np.float32(-1)), addends)
        turned, factors = like(x, derived(name, "/turned")), constant(derived(name, "/direction"), directions)
        x = graph.insert(builtin_op("MUL", [x, factors], turned), before=before).output
    if not np.any(addends):
        return x
    return graph.insert(
        builtin_op("ADD", [x, constant(threshold.number, addends)], like(x, name)), before=before
    ).output
