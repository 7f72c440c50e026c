"""Concatenations of channels."""

from __future__ import annotations

from collections.abc import Sequence

from litebnn.graph import Graph, Op, Tensor, builtin_op
from litebnn.rewriting.match import fused_activation

# Blocks of networks have some dozens. In a damaged file parts of parts may be any number.
MOST_PARTS = 64


def parts_of(graph: Graph, tensor: Tensor) -> list[Tensor]:
    """What float32 [..., channels] is concatenated from along its channels; nothing where it is not, or from too many.

    A damaged file may declare other sizes than come out of it, and is left alone.
    """
    op = graph.producer(tensor)
    if op is None or op.name != "CONCATENATION" or tensor.type != "FLOAT32" or fused_activation(op) != 0:
        return []
    parts = [part for part in op.inputs if part is not None]
    if len(parts) > MOST_PARTS:
        return []
    if getattr(op.options, "axis", 0) not in (-1, len(tensor.dims) - 1) or tensor.channels < 1:
        return []
    if any(part.type != "FLOAT32" or part.dims[:-1] != tensor.dims[:-1] or part.channels < 1 for part in parts):
        return []
    return parts if sum(part.channels for part in parts) == tensor.channels else []


def concatenation_of(parts: Sequence[Tensor], whole: Tensor) -> Op:
    """The op that makes `whole` of parts of its channels."""
    return builtin_op("CONCATENATION", parts, whole, axis=len(whole.dims) - 1)
