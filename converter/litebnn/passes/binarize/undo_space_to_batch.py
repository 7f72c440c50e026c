"""SPACE_TO_BATCH_ND, CONV_2D, BATCH_TO_SPACE_ND -> one dilated CONV_2D, where the input is a sign."""

from __future__ import annotations

import numpy as np

from litebnn.contract import Padding
from litebnn.graph import Array, Graph, Op
from litebnn.rewriting.each import each
from litebnn.rewriting.match import bits_of
from litebnn.rewriting.notes import Notes
from litebnn.rewriting.padding import same_padding


@each("CONV_2D")
def undo_space_to_batch(graph: Graph, op: Op, notes: Notes) -> bool:
    split, join = graph.producer(op.input(0)), graph.sole_consumer(op.output)
    if split is None or split.name != "SPACE_TO_BATCH_ND" or join is None or join.name != "BATCH_TO_SPACE_ND":
        return False
    if bits_of(graph, split.input(0)) is None:
        return False
    constants = [t.array for t in (split.input(1), split.input(2), join.input(1), join.input(2))]
    if any(value is None for value in constants):
        return False
    reason = _convert(graph, op, split, join, *constants)  # type: ignore[arg-type]
    return notes.left_alone(op, reason) if reason else True


def _convert(
    graph: Graph, op: Op, split: Op, join: Op, block: Array, pads: Array, block_out: Array, crops: Array
) -> str | None:
    """Replaces the three ops, or says why not."""
    options, taps = op.options, op.input(1).shape[1:3]
    plain = (options.stride_h, options.stride_w, options.dilation_h_factor, options.dilation_w_factor) == (1, 1, 1, 1)
    images = (block.shape, pads.shape, crops.shape) == ((2,), (2, 2), (2, 2))
    if not plain or not images or not np.array_equal(block, block_out) or np.any(block < 1):
        return "space-to-batch pair with a stride, or with blocks that differ"
    if options.padding != Padding.VALID:
        return "space-to-batch pair around a SAME convolution"
    sizes = split.input(0).dims[1:3]
    for padding in (Padding.VALID, Padding.SAME):
        if all(_is(padding, sizes[a], taps[a], int(block[a]), pads[a], crops[a]) for a in (0, 1)):
            break
    else:
        return f"space-to-batch padding {pads.tolist()} is neither SAME nor VALID"
    options.padding = int(padding)
    options.dilation_h_factor, options.dilation_w_factor = int(block[0]), int(block[1])
    graph.set_input(op, 0, split.input(0))
    graph.remove(join)
    graph.set_output(op, join.output)
    return None


def _is(padding: Padding, size: int, taps: int, dilation: int, pads: Array, crops: Array) -> bool:
    """Whether padding by `pads` and cropping the result by `crops` ([before, after]) is that padding of one axis."""
    reach = (taps - 1) * dilation
    before, _ = same_padding(max(size, 1), taps, 1, dilation)
    wanted = (0, 0) if padding == Padding.VALID else (before, reach - before)
    return int(crops[0]) == 0 and (int(pads[0]), int(pads[1]) - int(crops[1])) == wanted
