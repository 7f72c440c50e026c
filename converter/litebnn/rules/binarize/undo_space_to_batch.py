"""SPACE_TO_BATCH_ND, CONV_2D and BATCH_TO_SPACE_ND in a row, which read a sign or activation levels, become a PADV2
with zeros and one dilated CONV_2D.
"""

from __future__ import annotations

import numpy as np

from litebnn.analysis.few_values import few_values
from litebnn.analysis.match import bits_of
from litebnn.analysis.padding import without_zeros
from litebnn.analysis.reasons import why_no_sign
from litebnn.contract import Padding
from litebnn.graph import Array, Graph, Op, Tensor, derived, like
from litebnn.rules.build.notes import Notes, each
from litebnn.rules.build.signs import crop, pad_with, unpacked


@each("CONV_2D")
def undo_space_to_batch(graph: Graph, op: Op, notes: Notes) -> bool:
    split, last = graph.producer(op.input(0), "SPACE_TO_BATCH_ND"), op
    join = graph.sole_consumer(op.output)
    if join is not None and join.name == "QUANTIZE":
        last, join = join, graph.sole_consumer(join.output)
    if split is None or join is None or join.name != "BATCH_TO_SPACE_ND":
        return False
    unpadded, zeros = without_zeros(graph, split.input(0))
    few = few_values(graph, unpadded)
    if bits_of(graph, unpadded) is None and (few is None or not few.are_levels):
        return False
    reason = _convert(graph, op, split, last, join, unpadded, zeros)
    return notes.left_alone(op, reason) if reason else True


def _convert(graph: Graph, op: Op, split: Op, last: Op, join: Op, source: Tensor, zeros: Array) -> str | None:
    """Replaces a SPACE_TO_BATCH_ND, a CONV_2D and a BATCH_TO_SPACE_ND, or returns the reason why they cannot be
    replaced. `last` is the convolution, or the QUANTIZE after it.
    """
    block, pads, block_out, crops = (t.array for t in (split.input(1), split.input(2), join.input(1), join.input(2)))
    if block is None or pads is None or block_out is None or crops is None:
        return why_no_sign(graph, op.input(0))
    o = op.options
    plain = (o.stride_h, o.stride_w, o.dilation_h_factor, o.dilation_w_factor) == (1, 1, 1, 1)
    images = (block.shape, pads.shape, crops.shape) == ((2,), (2, 2), (2, 2))
    if not plain or not images or not np.array_equal(block, block_out) or np.any(block < 1):
        return "space-to-batch pair with a stride, or with blocks that differ"
    if o.padding != Padding.VALID:
        return "space-to-batch pair around a SAME convolution"
    # For stride 1, cropping the convolution's output is equivalent to padding its input less, or to cropping its input.
    amounts: Array = zeros + pads - crops
    if np.any(amounts < 0):
        source = _crop(graph, source, np.maximum(-amounts, 0), before=op)
        amounts = np.maximum(amounts, 0)
    source = pad_with(graph, source, amounts, 0.0, before=op)
    o.dilation_h_factor, o.dilation_w_factor = int(block[0]), int(block[1])
    graph.set_input(op, 0, source)
    graph.remove(join)
    graph.set_output(last, join.output)
    if last is not op:
        graph.set_output(op, like(op.output, derived(op.output.name, "/joined"), dims=join.output.dims))
        graph.set_input(last, 0, op.output)
    return None


def _crop(graph: Graph, tensor: Tensor, amounts: Array, *, before: Op) -> Tensor:
    """Crops int [2, 2] rows and columns from an NHWC tensor. For an unpacked sign, the packed bits are cropped
    instead.
    """
    bits, name = bits_of(graph, tensor), derived(tensor.name, "/cropped")
    cropped = crop(graph, tensor if bits is None else bits, name, amounts, before=before)
    return cropped if bits is None else unpacked(graph, cropped, tensor.channels, before=before)
