"""The bits of tensors that take few levels, made of the tensor that these are levels of."""

from __future__ import annotations

import numpy as np

from litebnn.contract import LCE_QUANTIZE
from litebnn.graph import Array, Graph, Op, Tensor, builtin_op, constant
from litebnn.rewriting.affine import next_level
from litebnn.rewriting.build import custom_op, derived, like, output_of, packed_like
from litebnn.rewriting.concatenation import concatenation_of
from litebnn.rewriting.signs.thermometer import MovedLevels, Thermometer

# The name of the bits ends so, behind that of the tensor of levels.
LEVELS = "/levels"


def moved_in_front(graph: Graph, levels: MovedLevels, *, before: Op | None = None) -> Tensor:
    """What the levels are those of, moved as these are; the ops for it are inserted, or are there already."""
    x, end = levels.thermometer.x, len(graph.ops) if before is None else graph.ops.index(before)
    for op in levels.ops:
        # A copy shares its options with the op, so that they tell it.
        known = [other for other in graph.consumers(x) if other.options is op.options and graph.ops.index(other) < end]
        moved = known[0].output if known else like(op.output, derived(op.output.name, "/before_levels"))
        if not known:
            graph.insert(Op(op.code, [x, *op.inputs[1:]], [moved], op.options), before=before)
        x = moved
    return x


def thermometer_bits(graph: Graph, thermometer: Thermometer, x: Tensor, name: str, *, before: Op) -> Tensor:
    """Inserts LceQuantize of all signs, one behind the other along the channels, and returns its packed output.

    What it packs is a difference, whose sign is exact, written as a scale and an addition for each channel, which the
    library takes into the packing. Where layers read the same levels they read the same bits.

    Args:
        x: that of the thermometer, or what has been moved of it.
        name: of the tensor of levels.
    """
    rising, reached = thermometer.rising, thermometer.thresholds
    below = next_level(reached, up=False)
    whole = like(x, derived(name, "/of_each"), dims=(*x.dims[:-1], len(reached) * x.channels))
    joined = output_of(graph, concatenation_of([x] * len(reached), whole), before=before)
    if not np.all(rising):
        joined = _of_channels(graph, "MUL", joined, np.where(rising, 1, -1), before=before)
    above = _of_channels(graph, "ADD", joined, np.where(rising, -reached, below), before=before)
    return output_of(graph, custom_op(LCE_QUANTIZE, [above], packed_like(above, derived(name, LEVELS))), before=before)


def _of_channels(graph: Graph, name: str, joined: Tensor, numbers: Array, *, before: Op) -> Tensor:
    """The output of a MUL or ADD with a number for each of the tensors that have been joined."""
    values = np.repeat(numbers, joined.channels // len(numbers)).astype(np.float32)
    result = like(joined, derived(joined.name, f"/{name.lower()}"))
    op = builtin_op(name, [joined, constant(derived(result.name, "/numbers"), values)], result)
    return output_of(graph, op, before=before)
