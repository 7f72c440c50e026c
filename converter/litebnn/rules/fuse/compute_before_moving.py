"""Ops on channels move before ops that reshape, concatenate, interleave or crop the outputs of binary convolutions. A
clamp also moves before a max pool, because both keep the order of values.

After the move, ops on channels can be fused into the convolutions. A sign makes the convolutions write bits, which are
32 times smaller to move.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence

import numpy as np

from litebnn.analysis.affine import per_channel, works_on_channels
from litebnn.analysis.layouts import INTERLEAVING, channels_moved
from litebnn.analysis.match import SIGNS, fused_activation
from litebnn.analysis.thresholds import threshold_of
from litebnn.build.bconv import is_float_bconv, is_of_binary_convs, with_clamp
from litebnn.build.notes import Notes, each
from litebnn.build.ops import is_describable, keeps_words, merge_reshapes, reshape_op, split_activation
from litebnn.build.signs import pack_signs
from litebnn.contract import BITS_PER_WORD, Activation
from litebnn.graph import Array, Graph, Op, Reshaped, Tensor, constant, derived, facts, like, then


@each("EXPAND_DIMS", "MAX_POOL_2D", "RESHAPE", "SQUEEZE", *INTERLEAVING, lowers="distance of moving ops from outputs")
def compute_before_moving(graph: Graph, op: Op, notes: Notes) -> bool:
    if facts(op).reshapes and op.input(0).type == "INT32" and merge_reshapes(graph, op):
        return True
    return _pack_before_reshape(graph, op) or _on_channels_first(graph, op)


def _pack_before_reshape(graph: Graph, op: Op) -> bool:
    """Moves signs before a reshape of any tensor, because reshaping bits costs less than reshaping floats."""
    x, changed = op.input(0) if facts(op).reshapes else None, False
    signs = graph.consumers(op.output) if x is not None and keeps_words(op) else []
    for sign in signs:
        threshold = threshold_of(sign)
        if x is None or threshold is None or not threshold.fits(op.output, x):
            continue
        if threshold.is_plain or len(signs) == 1:
            bits = pack_signs(graph, x, derived(sign.output.name, "/unshaped"), threshold, before=sign)
            bits.origin = then(sign.output, Reshaped(op.output.dims, x.dims), signs=x.channels)
            graph.replace(sign, reshape_op(bits, sign.output))
            changed = True
    return changed


def _on_channels_first(graph: Graph, op: Op) -> bool:
    moved = [op.input(0)] if op.name == "MAX_POOL_2D" else channels_moved(op)
    layer = graph.producer(moved[0]) if moved and graph.sole_consumer(moved[0]) is op else None
    if op.name == "MAX_POOL_2D" and _can_clamp(layer, fused_activation(op)):
        split_activation(graph, op)
    follower = graph.sole_consumer(op.output)
    if follower is None or not moved or not _can_move(graph, follower, op, moved, layer):
        return False
    suffix = "/pixels" if facts(op).reshapes else "/unpooled" if op.name == "MAX_POOL_2D" else "/interleaved"
    inputs, end = [], 0
    for source in moved:
        begin, end = end, end + source.channels
        # Each output channel of DEPTH_TO_SPACE comes from as many input channels as a block has pixels.
        own = np.arange(begin, end) % op.output.channels
        inputs.append(_on_source(graph, follower, op, source, own, suffix))
    graph.remove(op)
    result = follower.output
    mover = Op(op.code, [*inputs, *op.inputs[len(inputs) :]], [result], op.options, carried=op.carried)
    graph.replace(follower, reshape_op(inputs[0], result) if facts(op).reshapes else mover)
    return True


def _can_clamp(layer: Op | None, clamp: Activation | None) -> bool:
    """True if `layer` is an LceBconv2d that can also compute the activation `clamp`."""
    return layer is not None and clamp is not None and is_float_bconv(layer) and with_clamp(layer, clamp) is not None


def _can_move(graph: Graph, follower: Op, op: Op, moved: Sequence[Tensor], layer: Op | None) -> bool:
    """True if `follower` may move before `op`, and a binary layer can then compute it.

    Args:
        op: the op that moves the elements of the tensors `moved`.
        layer: the producer of the first of these tensors, if nothing but `op` reads this tensor.
    """
    if op.name == "MAX_POOL_2D":  # only clamps keep the order of all values
        return _can_clamp(layer, facts(follower).clamp)
    if not works_on_channels(follower, op.output):
        return False
    is_sign = follower.name in SIGNS
    if facts(op).reshapes:
        return is_float_bconv(layer) and not is_sign and is_describable(op.output)
    has_whole_words = not any(tensor.channels % BITS_PER_WORD for tensor in (op.output, *moved))
    return (has_whole_words or not is_sign) and is_of_binary_convs(graph, op.output)


def _on_source(graph: Graph, follower: Op, op: Op, source: Tensor, own: Array, suffix: str) -> Tensor:
    """Makes a copy of the op `follower`, which reads the output of `op`. The copy reads `source` instead, which is one
    of the inputs of `op`. The array `own` has the indices of the output channels of `op` that come from `source`.
    """
    name = derived(follower.output.name, suffix)
    if (threshold := threshold_of(follower)) is not None:
        return pack_signs(graph, source, name, threshold.of_channels(own, suffix), before=op)
    result = like(source, name)
    inputs: list[Tensor | None] = []
    for tensor in follower.inputs:
        values = None if tensor is op.output else per_channel(tensor, op.output.channels)
        constants = None if values is None else constant(derived(result.name, "/constants"), values[own])
        inputs.append(constants or source)
    graph.insert(Op(follower.code, inputs, [result], copy.copy(follower.options)), before=op)
    return result
