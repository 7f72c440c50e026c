"""Tensors that are signs because they only move, concatenate, compare or multiply signs, and their bits."""

from __future__ import annotations

import numpy as np

from litebnn.analysis.layouts import picked_from
from litebnn.analysis.match import bits_of, floats, fused_activation
from litebnn.build.ops import can_pool_bits
from litebnn.build.thresholds import pack_signs
from litebnn.graph import Graph, Op, Question, Tensor, derived, then

# The inputs that must be signs for an op's output to be signs.
_COMPUTED: dict[str, tuple[int, ...]] = {"MUL": (0, 1), "NEG": (0,), "PADV2": (0, 2)}


def _is_sign(graph: Graph, tensor: Tensor) -> bool | None:
    if bits_of(graph, tensor) is not None and tensor.type == "FLOAT32":
        return True
    if _is_one_or_minus_one(tensor):
        return False
    parts = [is_sign(graph, source) for source in _sources(graph.producer(tensor))]
    return None if not parts or None in parts else any(parts)


# Returns True for a tensor of signs, False for a constant of ±1, and None for a tensor of other numbers.
is_sign = Question(_is_sign, lambda op: _sources(op))


def holds_signs(graph: Graph, tensor: Tensor) -> bool:
    """True if a float tensor is an unpacked sign, or made of unpacked signs and constants of ±1."""
    return is_sign(graph, tensor) is True


def bits_of_signs(graph: Graph, tensor: Tensor, *, before: Op) -> Tensor:
    """The packed form of a tensor that `holds_signs`: the tensor that it unpacks, else a new LceQuantize's output."""
    bits = bits_of(graph, tensor)
    if bits is None:
        bits = pack_signs(graph, tensor, derived(tensor.name, "/bits"), before=before)
        bits.origin = then(tensor, signs=tensor.channels)
    return bits


def _sources(op: Op | None) -> list[Tensor]:
    """The inputs that must be signs for the outputs to be signs; empty for unknown ops."""
    if op is None or fused_activation(op) != 0 or (op.name == "MAX_POOL_2D" and not can_pool_bits(op)):
        return []
    indices = _COMPUTED.get(op.name) or picked_from(op)
    sources = [source for source in map(op.optional, indices) if source is not None]
    return sources if len(sources) == len(indices) else []


def _is_one_or_minus_one(tensor: Tensor) -> bool:
    array = floats(tensor)
    return array is not None and bool(np.all(np.abs(array) == 1))
