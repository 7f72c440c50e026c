"""Tensors that are signs because they only move, concatenate, compare or multiply signs."""

from __future__ import annotations

import numpy as np

from litebnn.graph import Graph, Op, Tensor, facts, then
from litebnn.rewriting.build import can_pool_bits, derived
from litebnn.rewriting.match import bits_of, floats, fused_activation
from litebnn.rewriting.padding import PADS, pads_nothing
from litebnn.rewriting.thresholds import pack_signs

# Ops whose output elements are elements of their first input.
MOVING = (
    *("BATCH_TO_SPACE_ND", "BROADCAST_TO", "DEPTH_TO_SPACE", "GATHER", "MIRROR_PAD", "RESIZE_NEAREST_NEIGHBOR"),
    *("REVERSE_V2", "SLICE", "SPACE_TO_DEPTH", "SPLIT_V", "STRIDED_SLICE", "TILE", "TRANSPOSE", "UNPACK"),
)
# Ops that select values by their order.
COMPARING = ("MAXIMUM", "MAX_POOL_2D", "MINIMUM", "REDUCE_MAX", "REDUCE_MIN")
# The inputs from which the elements of an op's outputs are selected.
_PICKED: dict[str, tuple[int, ...]] = {
    **dict.fromkeys((*MOVING, "MAX_POOL_2D", "REDUCE_MAX", "REDUCE_MIN"), (0,)),
    **dict.fromkeys(("MAXIMUM", "MINIMUM"), (0, 1)),
    **dict.fromkeys(("SELECT", "SELECT_V2"), (1, 2)),
    "SPLIT": (1,),
}
# The inputs that must be signs for an op's output to be signs.
_COMPUTED: dict[str, tuple[int, ...]] = {"MUL": (0, 1), "NEG": (0,), "PADV2": (0, 2)}
_JOINING = ("CONCATENATION", "PACK")
_MOST_TENSORS = 256


def holds_signs(graph: Graph, tensor: Tensor) -> bool:
    """True if a float tensor is an unpacked sign, or made of unpacked signs and constants of ±1."""
    waiting, seen, is_constant = [tensor], {tensor}, True
    while waiting and len(seen) <= _MOST_TENSORS:
        part = waiting.pop()
        if bits_of(graph, part) is not None and part.type == "FLOAT32":
            is_constant = False
        elif not _is_one_or_minus_one(part):
            sources = _sources(graph.producer(part))
            if not sources:
                return False
            waiting.extend(source for source in sources if source not in seen)
            seen.update(sources)
    return not waiting and not is_constant


def bits_of_signs(graph: Graph, tensor: Tensor, *, before: Op) -> Tensor:
    """The packed form of a tensor that `holds_signs`: the tensor that it unpacks, else a new LceQuantize's output."""
    bits = bits_of(graph, tensor)
    if bits is None:
        bits = pack_signs(graph, tensor, derived(tensor.name, "/bits"), before=before)
        bits.origin = then(tensor, signs=tensor.channels)
    return bits


def picked_from(op: Op) -> tuple[int, ...]:
    """The inputs from which an op selects all elements of its outputs; empty for an op that computes."""
    if fused_activation(op) != 0:
        return ()
    if op.name in _JOINING:
        return tuple(range(len(op.inputs)))
    if op.name in PADS and pads_nothing(op):
        return (0,)
    return _PICKED.get(op.name, (0,) if facts(op).reshapes else ())


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
