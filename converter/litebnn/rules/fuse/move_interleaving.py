"""Ops on channels move before ops that concatenate, interleave or crop the outputs of binary convolutions.

There they can be fused into the convolutions. A sign makes these write bits, which are 32 times smaller to move.
"""

from __future__ import annotations

import copy

import numpy as np

from litebnn.analysis.affine import per_channel, works_on_channels
from litebnn.analysis.match import SIGNS
from litebnn.analysis.thresholds import threshold_of
from litebnn.build.bconv import INTERLEAVING, interleaved, is_of_binary_convs
from litebnn.build.notes import Notes, each
from litebnn.build.signs import pack_signs
from litebnn.contract import BITS_PER_WORD
from litebnn.graph import Array, Graph, Op, Tensor, constant, derived, like


@each(*INTERLEAVING)
def move_interleaving(graph: Graph, op: Op, notes: Notes) -> bool:
    follower = graph.sole_consumer(op.output)
    if follower is None or not works_on_channels(follower, op.output) or not is_of_binary_convs(graph, op.output):
        return False
    sources = interleaved(op)
    if follower.name in SIGNS and any(t.channels % BITS_PER_WORD for t in (op.output, *sources)):
        return False
    moved: list[Tensor | None] = []
    first = 0
    for source in sources:
        # Each output channel of DEPTH_TO_SPACE comes from one input channel for each pixel of a block.
        own = np.arange(first, first + source.channels) % op.output.channels
        moved.append(_on_source(graph, follower, op, source, own))
        first += source.channels
    graph.remove(op)
    inputs = [*moved, *op.inputs[len(moved) :]]
    graph.replace(follower, Op(op.code, inputs, [follower.output], op.options, carried=op.carried))
    return True


def _on_source(graph: Graph, follower: Op, op: Op, source: Tensor, own: Array) -> Tensor:
    """Applies `follower`, which reads the output of `op`, to one input of `op` instead.

    The indices `own` are the output's channels that come from this input.
    """
    name = derived(follower.output.name, "/interleaved")
    if (threshold := threshold_of(follower)) is not None:
        return pack_signs(graph, source, name, threshold.of_channels(own, "/interleaved"), before=op)
    result = like(source, name)
    inputs: list[Tensor | None] = []
    for tensor in follower.inputs:
        values = None if tensor is op.output else per_channel(tensor, op.output.channels)
        constants = None if values is None else constant(derived(result.name, "/constants"), values[own])
        inputs.append(constants or source)
    graph.insert(Op(follower.code, inputs, [result], copy.copy(follower.options)), before=op)
    return result
