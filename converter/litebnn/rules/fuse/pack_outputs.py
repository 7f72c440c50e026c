"""If the float output of an LceBconv2d is read only as signs with one threshold, the LceBconv2d is changed to write
these signs as bits.
"""

from __future__ import annotations

import numpy as np

from litebnn.analysis.affine import next_level
from litebnn.analysis.thresholds import crossing, threshold_of
from litebnn.contract import LCE_BCONV_2D
from litebnn.graph import Graph, Op
from litebnn.rules.build.bconv import can_pack, is_float_bconv, multiplier_and_bias, set_output_thresholds
from litebnn.rules.build.notes import Notes, each
from litebnn.rules.build.ops import take_results


@each(LCE_BCONV_2D)
def pack_outputs(graph: Graph, op: Op, notes: Notes) -> bool:
    if not is_float_bconv(op) or graph.is_output(op.output):
        return False
    consumers = graph.consumers(op.output)
    thresholds = [threshold_of(consumer) for consumer in consumers]
    threshold = thresholds[0] if thresholds else None
    if threshold is None or any(other is None or other.key != threshold.key for other in thresholds):
        return False
    if not can_pack(op, notes):
        return False
    multiplier, bias = (values.astype(np.float64) for values in multiplier_and_bias(op))
    if not threshold.is_plain:
        first, falls, _ = crossing(multiplier, bias, threshold.level)
        falls = falls != threshold.falls
        multiplier, bias = np.where(falls, -1.0, 1.0), np.where(falls, next_level(first, up=False), -first)
    set_output_thresholds(graph, op, multiplier, bias)
    take_results(graph, op, consumers)
    notes.fused(op, "LceQuantize")
    return True
