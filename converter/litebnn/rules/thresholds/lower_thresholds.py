"""A THRESHOLD (the converter's own op for signs) that no layer has absorbed is replaced. An op computes the difference
of the sign's input and its threshold, and an LceQuantize packs the signs of this difference.

Channels whose sign falls (+1 below the threshold) are first negated, if the filters that read the bits can absorb the
negation.
"""

from __future__ import annotations

import numpy as np

from litebnn.analysis.match import THRESHOLD
from litebnn.analysis.thresholds import Threshold, threshold_of
from litebnn.graph import Graph, Op
from litebnn.rules.build.notes import Notes, each
from litebnn.rules.build.signs import can_negate_channels, difference, negate_channels, sign_op


@each(THRESHOLD)
def lower_thresholds(graph: Graph, sign: Op, notes: Notes) -> bool:
    threshold, x, bits = threshold_of(sign), sign.input(0), sign.output
    if threshold is None:
        return False
    if np.any(threshold.falls) and can_negate_channels(graph, bits):
        negate_channels(graph, bits, np.broadcast_to(threshold.falls, x.channels))
        threshold = threshold.rising
    read = x if threshold.is_plain else difference(graph, x, threshold, before=sign)
    graph.replace(sign, sign_op(read, bits, Threshold()))
    return True
