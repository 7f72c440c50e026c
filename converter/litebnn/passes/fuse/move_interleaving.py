"""What works channel by channel goes in front of what joins, spreads or crops the outputs of binary convolutions.

There it can be fused into the convolutions, and a sign makes them write bits, of which 32 times fewer bytes are moved.
"""

from __future__ import annotations

import copy

import numpy as np

from litebnn.contract import BITS_PER_WORD, LCE_QUANTIZE
from litebnn.graph import Array, Graph, Op, Tensor, constant
from litebnn.rewriting.affine import per_channel, works_on_channels
from litebnn.rewriting.bconv import INTERLEAVING, interleaved, is_of_binary_convs
from litebnn.rewriting.build import derived, like, pack_signs
from litebnn.rewriting.each import each
from litebnn.rewriting.notes import Notes


@each(*INTERLEAVING)
def move_interleaving(graph: Graph, op: Op, notes: Notes) -> bool:
    follower = graph.sole_consumer(op.output)
    if follower is None or not works_on_channels(follower, op.output) or not is_of_binary_convs(graph, op.output):
        return False
    sources = interleaved(op)
    if follower.name == LCE_QUANTIZE and any(t.channels % BITS_PER_WORD for t in (op.output, *sources)):
        return False
    moved: list[Tensor | None] = []
    first = 0
    for source in sources:
        # A channel of DEPTH_TO_SPACE's output comes from as many of its input as a block has pixels.
        own = np.arange(first, first + source.channels) % op.output.channels
        moved.append(_on_source(graph, follower, op, source, own))
        first += source.channels
    graph.remove(op)
    inputs = [*moved, *op.inputs[len(moved) :]]
    graph.replace(follower, Op(op.code, inputs, [follower.output], op.options, carried=op.carried))
    return True


def _on_source(graph: Graph, follower: Op, op: Op, source: Tensor, own: Array) -> Tensor:
    """What the follower of `op` makes of one of its inputs, which holds the channels `own` of its output."""
    name = derived(follower.output.name, "/interleaved")
    if follower.name == LCE_QUANTIZE:
        return pack_signs(graph, source, name, before=op)
    result = like(source, name)
    inputs: list[Tensor | None] = []
    for tensor in follower.inputs:
        values = None if tensor is op.output else per_channel(tensor, op.output.channels)
        constants = None if values is None else constant(derived(result.name, "/constants"), values[own])
        inputs.append(constants or source)
    graph.insert(Op(follower.code, inputs, [result], copy.copy(follower.options)), before=op)
    return result
