"""Ops that only move, join or compare the elements of their inputs."""

from __future__ import annotations

from litebnn.analysis.match import fused_activation
from litebnn.analysis.padding import PADS, pads_nothing
from litebnn.graph import Op, facts

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
_JOINING = ("CONCATENATION", "PACK")


def picked_from(op: Op) -> tuple[int, ...]:
    """The inputs from which an op selects all elements of its outputs; empty for an op that computes."""
    if fused_activation(op) != 0:
        return ()
    if op.name in _JOINING:
        return tuple(range(len(op.inputs)))
    if op.name in PADS and pads_nothing(op):
        return (0,)
    return _PICKED.get(op.name, (0,) if facts(op).reshapes else ())
