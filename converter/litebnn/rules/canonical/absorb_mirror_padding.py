"""A MIRROR_PAD and a VALID MAX_POOL_2D become a MAX_POOL_2D with SAME padding, if that gives the same values.

Keras on torch exports max pools in this form. Copies of values do not change the maximum over a window.
"""

from __future__ import annotations

import numpy as np

from litebnn.analysis.padding import same_padding
from litebnn.contract import Padding
from litebnn.graph import Graph, Op
from litebnn.rules.build.notes import Notes, each

_SYMMETRIC = 1  # the other mode, REFLECT, does not repeat the value at the edge itself


@each("MAX_POOL_2D")
def absorb_mirror_padding(graph: Graph, op: Op, notes: Notes) -> bool:
    pad, o = graph.producer(op.input(0), "MIRROR_PAD"), op.options
    if pad is None or o.padding != Padding.VALID:
        return False
    amounts, sizes = pad.input(1).array, pad.input(0).dims
    if amounts is None or amounts.shape != (4, 2) or len(sizes) != 4 or min(sizes) < 1:
        return False
    taps, strides = (o.filter_height, o.filter_width), (o.stride_h, o.stride_w)
    same = same_padding(sizes[1:3], taps, strides)
    if same is None or not np.array_equal(amounts, [(0, 0), *same, (0, 0)]):
        return False
    outputs = tuple(-(-size // stride) for size, stride in zip(sizes[1:3], strides, strict=True))
    if op.output.dims[1:3] != outputs:
        return False
    # MIRROR_PAD repeats the n values next to an edge. If a window extends n values beyond the edge, it must also
    # contain the n values that were repeated.
    edge = 0 if getattr(pad.options, "mode", None) == _SYMMETRIC else 1
    if any(2 * max(pads) + edge > count for pads, count in zip(same, taps, strict=True)):
        return False
    graph.set_input(op, 0, pad.input(0))
    o.padding = Padding.SAME
    return True
