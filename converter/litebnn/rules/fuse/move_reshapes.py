"""Reshapes move to where they cost least: after LceQuantize, and after ops that an LceBconv2d can fuse."""

from __future__ import annotations

from litebnn.analysis.affine import affine_of
from litebnn.analysis.thresholds import threshold_of
from litebnn.build.notes import Notes, each
from litebnn.build.ops import is_describable, keeps_words, merge_reshapes, reshape_op
from litebnn.build.signs import pack_signs
from litebnn.contract import LCE_BCONV_2D
from litebnn.graph import Graph, Op, Reshaped, derived, facts, like, then


@each()
def move_reshapes(graph: Graph, op: Op, notes: Notes) -> bool:
    if not facts(op).reshapes:
        return False
    if op.input(0).type == "INT32" and merge_reshapes(graph, op):
        return True
    return _pack_first(graph, op) or _fuse_first(graph, op)


def _pack_first(graph: Graph, op: Op) -> bool:
    """Moves a sign before a reshape."""
    x, changed = op.input(0), False
    signs = graph.consumers(op.output) if keeps_words(op) else []
    for sign in signs:
        threshold = threshold_of(sign)
        if threshold is not None and threshold.fits(op.output, x) and (threshold.is_plain or len(signs) == 1):
            bits = pack_signs(graph, x, derived(sign.output.name, "/unshaped"), threshold, before=sign)
            bits.origin = then(sign.output, Reshaped(op.output.dims, x.dims), signs=x.channels)
            graph.replace(sign, reshape_op(bits, sign.output))
            changed = True
    return changed


def _fuse_first(graph: Graph, op: Op) -> bool:
    """Moves an op before a reshape if the LceBconv2d there can fuse it."""
    source, follower = graph.producer(op.input(0)), graph.sole_consumer(op.output)
    if source is None or source.name != LCE_BCONV_2D or graph.sole_consumer(op.input(0)) is not op or follower is None:
        return False
    channels = op.output.channels
    if op.input(0).channels != channels or follower.output.dims != op.output.dims or not is_describable(op.output):
        return False
    position = 0 if follower.inputs[0] is op.output else 1
    if facts(follower).clamp is None and affine_of(follower, channels, left=position == 0) is None:
        return False
    inner = like(source.output, derived(follower.output.name, "/pixels"))
    result = follower.output
    graph.set_input(follower, position, source.output)
    graph.set_output(follower, inner)
    graph.remove(op)
    graph.insert(reshape_op(inner, result), after=follower)
    return True
