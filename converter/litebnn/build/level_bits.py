"""The packed signs of tensors with few levels, computed from the tensor that determines the levels."""

from __future__ import annotations

import numpy as np

from litebnn.analysis.sums import FewValues, SignSum
from litebnn.analysis.thresholds import Threshold
from litebnn.build.ops import concatenation_of, output_of
from litebnn.build.thresholds import pack_signs
from litebnn.graph import Counted, Graph, Op, Tensor, derived, like, then


def moved_source(graph: Graph, levels: FewValues, *, before: Op | None = None) -> Tensor:
    """The tensor that determines the levels, moved by copies of the ops that move the levels; copies may exist."""
    x, end = levels.x, len(graph.ops) if before is None else graph.ops.index(before)
    for op in levels.ops:
        # An op that was inserted earlier shares its options object with the original, by which it is recognized.
        known = [other for other in graph.consumers(x) if other.options is op.options and graph.ops.index(other) < end]
        moved = known[0].output if known else like(op.output, derived(op.output.name, "/before_levels"))
        if not known:
            graph.insert(Op(op.code, [x, *op.inputs[1:]], [moved], op.options), before=before)
        x = moved
    return x


def bits_of_levels(graph: Graph, levels: FewValues, total: SignSum, tensor: Tensor, *, before: Op) -> Tensor:
    """Inserts the packing of all signs of a sum, concatenated along the channels, and returns its packed output.

    Layers that read the same levels share one packing.

    Args:
        tensor: the tensor of levels.
    """
    x, count, name = moved_source(graph, levels, before=before), len(total.scales), tensor.name
    whole = like(x, derived(name, "/of_each"), dims=(*x.dims[:-1], count * x.channels))
    joined = output_of(graph, concatenation_of([x] * count, whole), before=before)
    level, falls = (np.repeat(each, x.channels) for each in (total.thresholds, ~total.rising))
    written = derived(whole.name, "/add")
    threshold = Threshold(level.astype(np.float32), falls, written, derived(written, "/numbers"))
    bits = pack_signs(graph, joined, derived(name, "/levels"), threshold, before=before)
    counted = Counted(total.middle, tuple(total.scales.tolist()), tuple(total.rising.tolist()))
    bits.origin = then(tensor, counted, signs=joined.channels)
    return bits
