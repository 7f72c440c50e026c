"""SPACE_TO_BATCH_ND, CONV_2D, BATCH_TO_SPACE_ND -> one dilated CONV_2D, where the input is a sign."""

from __future__ import annotations

import numpy as np

from litebnn.contract import Padding
from litebnn.flatbuffer import Graph
from litebnn.passes.common import bits_of
from litebnn.passes.notes import Notes
from litebnn.passes.padding import same_padding


def undo_space_to_batch(graph: Graph, notes: Notes) -> bool:
    changed = False
    for op in list(graph.ops):
        if op.name != "CONV_2D":
            continue
        split, join = graph.producer(op.input(0)), graph.sole_consumer(op.output)
        if split is None or split.name != "SPACE_TO_BATCH_ND" or join is None or join.name != "BATCH_TO_SPACE_ND":
            continue
        if bits_of(graph, split.input(0)) is None:
            continue
        block, pads = split.input(1).array, split.input(2).array
        block_out, crops = join.input(1).array, join.input(2).array
        if block is None or pads is None or block_out is None or crops is None:
            continue
        options, taps = op.options, op.input(1).shape[1:3]
        plain = (options.strideH, options.strideW, options.dilationHFactor, options.dilationWFactor) == (1, 1, 1, 1)
        if not plain or block.shape != (2,) or not np.array_equal(block, block_out) or np.any(block < 1):
            notes.left_alone(op, "space-to-batch pair with a stride, or with blocks that differ")
            continue
        if options.padding != Padding.VALID:
            notes.left_alone(op, "space-to-batch pair around a SAME convolution")
            continue
        kinds: set[Padding | None] = set()
        for axis in (0, 1):
            reach = (taps[axis] - 1) * int(block[axis])
            before, after = int(pads[axis][0]), int(pads[axis][1]) - int(crops[axis][1])
            if reach == 0 and (before, after) == (0, 0):
                continue
            same, _ = same_padding(max(split.input(0).dims[axis + 1], 1), taps[axis], 1, int(block[axis]))
            if int(crops[axis][0]) != 0:
                kinds.add(None)
            elif (before, after) == (0, 0):
                kinds.add(Padding.VALID)
            else:
                kinds.add(Padding.SAME if (before, after) == (same, reach - same) else None)
        if len(kinds) > 1 or None in kinds:
            notes.left_alone(op, f"space-to-batch padding {pads.tolist()} is neither SAME nor VALID")
            continue
        options.padding = int(next(iter(kinds), Padding.VALID) or 0)
        options.dilationHFactor, options.dilationWFactor = int(block[0]), int(block[1])
        graph.set_input(op, 0, split.input(0))
        graph.remove(join)
        graph.set_output(op, join.output)
        changed = True
    return changed
