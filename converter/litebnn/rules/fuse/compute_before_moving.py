"""Ops on channels move before ops that reshape, concatenate, interleave or crop the outputs of binary convolutions. A
clamp also moves before a max pool, because both keep the order of values.

After the move, ops on channels can be fused into the convolutions. A sign makes the convolutions write bits. Bits are
32 times smaller to move, so signs of other tensors also move before reshapes and concatenations.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence

import numpy as np

from litebnn.analysis.affine import works_on_channels
from litebnn.analysis.layouts import INTERLEAVING, channels_moved
from litebnn.analysis.match import SIGNS, fused_activation
from litebnn.analysis.thresholds import threshold_of
from litebnn.contract import BITS_PER_WORD, Activation
from litebnn.graph import Array, Graph, Op, Reshaped, Tensor, derived, facts, then
from litebnn.rules.build.bconv import is_float_bconv, is_of_binary_convs, with_clamp
from litebnn.rules.build.notes import Notes, each
from litebnn.rules.build.ops import (
    concatenation_of,
    is_describable,
    keeps_words,
    merge_reshapes,
    on_channels,
    parts_of,
    reshape_op,
    spend_on_ops,
    split_activation,
)
from litebnn.rules.build.signs import pack_signs


@each("EXPAND_DIMS", "MAX_POOL_2D", "RESHAPE", "SQUEEZE", *INTERLEAVING)
def compute_before_moving(graph: Graph, op: Op, notes: Notes) -> bool:
    if facts(op).reshapes and op.input(0).type == "INT32" and merge_reshapes(graph, op):
        return True
    if op.name == "MAX_POOL_2D" and fused_activation(op) and _can_clamp(graph, op, fused_activation(op)):
        split_activation(graph, op)
    moved = [op.input(0)] if facts(op).reshapes or op.name == "MAX_POOL_2D" else channels_moved(op)
    followers = [reader for reader in graph.consumers(op.output) if moved and _can_move(graph, reader, op, moved)]
    for follower in followers:
        _move(graph, follower, op, moved)
    if followers and not graph.is_read(op.output):
        graph.remove(op)
    return bool(followers)


def _can_move(graph: Graph, follower: Op, op: Op, moved: Sequence[Tensor]) -> bool:
    """True if `follower` may move before `op`, and the move pays. It pays if a binary layer can then compute
    `follower`, or if `op` then moves bits instead of floats.

    Args:
        op: the op that moves the elements of the tensors `moved`.
    """
    threshold, readers = threshold_of(follower), graph.consumers(op.output)
    if threshold is not None and facts(op).reshapes:
        costs_nothing = threshold.is_plain or len(readers) == 1
        return keeps_words(op) and threshold.fits(op.output, moved[0]) and costs_nothing
    if threshold is not None and _joins_words(graph, op) and not graph.is_output(op.output):
        # Another CONCATENATION may also read the joined tensor, because other rules make it read the parts directly.
        return all(reader.name in SIGNS or parts_of(graph, reader.output) for reader in readers)
    if graph.sole_consumer(op.output) is not follower:
        return False
    if op.name == "MAX_POOL_2D":  # only clamps keep the order of all values
        return _can_clamp(graph, op, facts(follower).clamp)
    if not works_on_channels(follower, op.output):
        return False
    if facts(op).reshapes:
        keeps_channels = moved[0].channels == op.output.channels
        return keeps_channels and is_describable(op.output) and _layer_before(graph, op) is not None
    has_whole_words = not any(tensor.channels % BITS_PER_WORD for tensor in (op.output, *moved))
    return (has_whole_words or threshold is None) and is_of_binary_convs(graph, op.output)


def _joins_words(graph: Graph, op: Op) -> bool:
    """True if `op` concatenates tensors whose packed signs can be concatenated too."""
    parts = parts_of(graph, op.output)
    return len(parts) > 1 and not any(part.channels % BITS_PER_WORD for part in parts[:-1])


def _layer_before(graph: Graph, op: Op) -> Op | None:
    """Returns the float LceBconv2d whose output only `op` reads, if there is one."""
    layer = graph.producer(op.input(0)) if graph.sole_consumer(op.input(0)) is op else None
    return layer if is_float_bconv(layer) else None


def _can_clamp(graph: Graph, pool: Op, clamp: Activation | None) -> bool:
    """True if the LceBconv2d before a max pool can also compute the activation `clamp`."""
    layer = _layer_before(graph, pool)
    return layer is not None and clamp is not None and with_clamp(layer, clamp) is not None


def _move(graph: Graph, follower: Op, op: Op, moved: Sequence[Tensor]) -> None:
    """Moves `follower` before `op`, which moves the elements of the tensors `moved`."""
    spend_on_ops(graph, len(moved) - 1)
    is_sign = follower.name in SIGNS
    whole = "/unpooled" if op.name == "MAX_POOL_2D" else "/unshaped" if is_sign else "/pixels"
    inputs, end = [], 0
    for i, source in enumerate(moved):
        begin, end = end, end + source.channels
        suffix = f"/part{i}" if op.name in INTERLEAVING else whole
        # Each output channel of DEPTH_TO_SPACE comes from as many input channels as a block has pixels.
        own = np.arange(begin, end) % op.output.channels
        inputs.append(_on_source(graph, follower, op, source, own, suffix))
    result = follower.output
    if facts(op).reshapes:
        if is_sign:
            inputs[0].origin = then(result, Reshaped(op.output.dims, moved[0].dims), signs=moved[0].channels)
        graph.replace(follower, reshape_op(inputs[0], result))
        return
    others, options = op.inputs[len(inputs) :], copy.copy(op.options)
    moved_op = Op(op.code, [*inputs, *others], [result], options, carried=op.carried)
    # TensorFlow writes the last axis as -1 or by its number. Concatenations of bits always have the number.
    joins_bits = is_sign and op.name == "CONCATENATION"
    graph.replace(follower, concatenation_of(inputs, result) if joins_bits else moved_op)


def _on_source(graph: Graph, follower: Op, op: Op, source: Tensor, own: Array, suffix: str) -> Tensor:
    """Makes a copy of the op `follower`, which reads the output of `op`. The copy reads `source` instead, which is one
    of the inputs of `op`. The array `own` has the indices of the output channels of `op` that come from `source`.
    """
    name = derived(follower.output.name, suffix)
    if (threshold := threshold_of(follower)) is not None:
        return pack_signs(graph, source, name, threshold.of_channels(own, suffix), before=op)
    return on_channels(graph, follower, op.output, source, own, name, before=op)
