"""What is made of signs and takes no other values, because it only moves, joins, compares or multiplies them."""

from __future__ import annotations

import numpy as np

from litebnn.graph import Graph, Op, Tensor, facts
from litebnn.rewriting.build import can_pool_bits, derived, pack_signs
from litebnn.rewriting.match import bits_of, floats, fused_activation
from litebnn.rewriting.padding import PADS, pads_nothing

# Each element of their outputs is one of their first input's.
MOVING = (
    *("BATCH_TO_SPACE_ND", "BROADCAST_TO", "DEPTH_TO_SPACE", "GATHER", "MIRROR_PAD", "RESIZE_NEAREST_NEIGHBOR"),
    *("REVERSE_V2", "SLICE", "SPACE_TO_DEPTH", "SPLIT_V", "STRIDED_SLICE", "TILE", "TRANSPOSE", "UNPACK"),
)
# Which of the values an op picks depends on their order.
COMPARING = ("MAXIMUM", "MAX_POOL_2D", "MINIMUM", "REDUCE_MAX", "REDUCE_MIN")
# Which inputs the elements of an op's outputs are picked from.
_PICKED: dict[str, tuple[int, ...]] = {
    **dict.fromkeys((*MOVING, "MAX_POOL_2D", "REDUCE_MAX", "REDUCE_MIN"), (0,)),
    **dict.fromkeys(("MAXIMUM", "MINIMUM"), (0, 1)),
    **dict.fromkeys(("SELECT", "SELECT_V2"), (1, 2)),
    "SPLIT": (1,),
}
# Which inputs have to be signs for what an op computes of them to be.
_COMPUTED: dict[str, tuple[int, ...]] = {"MUL": (0, 1), "NEG": (0,), "PADV2": (0, 2)}
_JOINING = ("CONCATENATION", "PACK")
_MOST_TENSORS = 256


def holds_signs(graph: Graph, tensor: Tensor) -> bool:
    """Whether a float tensor is an unpacked sign or made of such, and of constants of ±1, so that it is ±1 itself."""
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
    """The bits of a tensor that `holds_signs`: those that it unpacks, else those of an LceQuantize that is inserted."""
    bits = bits_of(graph, tensor)
    return pack_signs(graph, tensor, derived(tensor.name, "/bits"), before=before) if bits is None else bits


def picked_from(op: Op) -> tuple[int, ...]:
    """Which inputs an op takes all elements of its outputs from, as they are; none of an op that computes."""
    if fused_activation(op) != 0:
        return ()
    if op.name in _JOINING:
        return tuple(range(len(op.inputs)))
    if op.name in PADS and pads_nothing(op):
        return (0,)
    return _PICKED.get(op.name, (0,) if facts(op).reshapes else ())


def _sources(op: Op | None) -> list[Tensor]:
    """The inputs that have to be signs for the outputs to be; none of an op of which more is not known."""
    if op is None or fused_activation(op) != 0 or (op.name == "MAX_POOL_2D" and not can_pool_bits(op)):
        return []
    indices = _COMPUTED.get(op.name) or picked_from(op)
    sources = [source for source in map(op.optional, indices) if source is not None]
    return sources if len(sources) == len(indices) else []


def _is_one_or_minus_one(tensor: Tensor) -> bool:
    array = floats(tensor)
    return array is not None and bool(np.all(np.abs(array) == 1))
