"""A PAD or PADV2 with amounts of zero is removed."""

from __future__ import annotations

import numpy as np

from litebnn.analysis.padding import PADS
from litebnn.build.notes import Notes, each
from litebnn.graph import Graph, Op


@each(*PADS, lowers="reads of padding")
def remove_empty_padding(graph: Graph, op: Op, notes: Notes) -> bool:
    amounts = op.input(1).array
    if amounts is None or np.any(amounts) or op.output.dims != op.input(0).dims:
        return False
    return graph.bypass(op, op.input(0))
