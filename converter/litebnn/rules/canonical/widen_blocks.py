"""A FULLY_CONNECTED with INT2 weights and a scale for each block gets the same weights as INT4, because runtimes lack
this form of INT2.
"""

from __future__ import annotations

from litebnn.analysis.quantization import NARROW_TYPES, pack_levels, stored_levels
from litebnn.graph import Buffer, Graph, Op, Tensor
from litebnn.rules.build.notes import Notes, each


@each("FULLY_CONNECTED")
def widen_blocks(graph: Graph, op: Op, notes: Notes) -> bool:
    old = op.input(1)
    levels = stored_levels(old)
    if old.type != "INT2" or old.details is None or levels is None:
        return False
    buffer = Buffer(pack_levels(levels, NARROW_TYPES["INT4"]))
    wide = Tensor(old.name, "INT4", old.shape, buffer, details=old.details, carried=old.carried)
    graph.set_input(op, 1, wide)
    notes.warn(op, "its INT2 weights have a scale for each block, and become INT4: no runtime computes with the former")
    return True
