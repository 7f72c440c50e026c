"""A layer that reads signs beside channels of zeros reads the signs alone, without the weights that the zeros meet."""

from __future__ import annotations

import numpy as np

from litebnn.analysis.match import floats
from litebnn.analysis.padding import PADS, constant_padding
from litebnn.graph import Graph, Op, constant
from litebnn.rules.build.notes import Notes, each
from litebnn.rules.build.signs import holds_signs


@each("CONV_2D", "FULLY_CONNECTED")
def absorb_channel_padding(graph: Graph, op: Op, notes: Notes) -> bool:
    x, weights = op.input(0), floats(op.input(1))
    pad = graph.producer(x, *PADS)
    padding = None if pad is None else constant_padding(pad)
    if pad is None or padding is None or weights is None or weights.shape[-1] != x.channels:
        return False
    if padding.value != 0 or np.any(padding.amounts[:-1]) or not holds_signs(graph, pad.input(0)):
        return False
    first, channels = int(padding.amounts[-1, 0]), pad.input(0).channels
    kept = np.ascontiguousarray(weights[..., first : first + channels])
    graph.set_input(op, 0, pad.input(0))
    graph.set_input(op, 1, constant(op.input(1).name, kept))
    return True
