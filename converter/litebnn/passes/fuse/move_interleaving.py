"""What works channel by channel goes in front of the DEPTH_TO_SPACE and CONCATENATION of binary convolutions' outputs.

There it can be fused into the convolutions, and a sign makes them write bits, of which 32 times fewer bytes are moved.
"""

from __future__ import annotations

import copy

import numpy as np

from litebnn.contract import BITS_PER_WORD, LCE_BCONV_2D, LCE_QUANTIZE
from litebnn.graph import Array, Graph, Op, Tensor, constant, facts
from litebnn.rewriting.affine import affine_of, per_channel
from litebnn.rewriting.build import derived, like, pack_signs
from litebnn.rewriting.each import each
from litebnn.rewriting.match import fused_activation
from litebnn.rewriting.notes import Notes

_FARTHEST = 8  # ops between a convolution and where its outputs are interleaved


@each("DEPTH_TO_SPACE", "CONCATENATION")
def move_interleaving(graph: Graph, op: Op, notes: Notes) -> bool:
    follower = graph.sole_consumer(op.output)
    if follower is None or not _works_on_channels(follower, op.output) or not _is_of_bits(graph, op.output):
        return False
    sources = [op.input(i) for i in range(len(op.inputs))]
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
    graph.replace(follower, Op(op.code, moved, [follower.output], op.options, carried=op.carried))
    return True


def _works_on_channels(op: Op, x: Tensor) -> bool:
    """Whether the op computes each element of its output from the one of `x` and from its channel."""
    if op.name == LCE_QUANTIZE:
        return True
    if op.output.dims != x.dims or op.output.type != "FLOAT32":
        return False
    return facts(op).clamp is not None or affine_of(op, x.channels, left=op.inputs[0] is x) is not None


def _is_of_bits(graph: Graph, tensor: Tensor, farthest: int = _FARTHEST) -> bool:
    """Whether floats come from binary convolutions, interleaved along the channels, and nothing else reads them."""
    op = graph.producer(tensor)
    if op is None or tensor.type != "FLOAT32" or graph.sole_consumer(tensor) is None or farthest == 0:
        return False
    if op.name == LCE_BCONV_2D:
        return True
    if op.name == "CONCATENATION":
        if op.options.axis not in (-1, len(tensor.dims) - 1) or fused_activation(op) != 0:
            return False
    elif op.name != "DEPTH_TO_SPACE":
        x = next((t for t in op.inputs if t is not None and not t.is_constant), None)
        return x is not None and _works_on_channels(op, x) and _is_of_bits(graph, x, farthest - 1)
    return all(t is not None and _is_of_bits(graph, t, farthest - 1) for t in op.inputs)


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
