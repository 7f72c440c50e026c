"""Reshapes move to where they cost least: behind LceQuantize, and behind what an LceBconv2d can fuse."""

from __future__ import annotations

from litebnn.contract import LCE_BCONV_2D, LCE_QUANTIZE
from litebnn.graph import Graph, Op, facts
from litebnn.rewriting.affine import affine_of
from litebnn.rewriting.build import derived, like, pack_signs
from litebnn.rewriting.each import each
from litebnn.rewriting.notes import Notes
from litebnn.rewriting.reshapes import is_describable, keeps_words, reshape_op


@each()
def move_reshapes(graph: Graph, op: Op, notes: Notes) -> bool:
    return facts(op).reshapes and (_merge(graph, op) or _pack_first(graph, op) or _fuse_first(graph, op))


def _merge(graph: Graph, op: Op) -> bool:
    """A reshape of a reshape -> one; a reshape to the same dimensions -> none."""
    first = graph.producer(op.input(0))
    if op.input(0).type != "INT32" or not is_describable(op.output):
        return False
    if first is not None and facts(first).reshapes:
        graph.replace(op, reshape_op(first.input(0), op.output))
        return True
    if op.input(0).dims == op.output.dims and not graph.is_output(op.output):
        graph.redirect(op.output, op.input(0))
        graph.remove(op)
        return True
    return False


def _pack_first(graph: Graph, op: Op) -> bool:
    """LceQuantize of a reshape -> reshape of LceQuantize."""
    signs = [reader for reader in graph.consumers(op.output) if reader.name == LCE_QUANTIZE]
    if not signs or not keeps_words(op):
        return False
    for sign in signs:
        bits = pack_signs(graph, op.input(0), derived(sign.output.name, "/unshaped"), before=sign)
        graph.replace(sign, reshape_op(bits, sign.output))
    return True


def _fuse_first(graph: Graph, op: Op) -> bool:
    """An op that the LceBconv2d in front of a reshape can fuse goes in front of the reshape."""
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
