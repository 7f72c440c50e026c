"""Reshapes and transposes of floats and of bits."""

from __future__ import annotations

import numpy as np

from litebnn.analysis.layouts import Layout
from litebnn.build.ops import transpose_op
from litebnn.contract import BITS_PER_WORD
from litebnn.graph import Graph, Op, Tensor, builtin_op, constant, derived, facts


def is_describable(tensor: Tensor) -> bool:
    return sum(d < 0 for d in tensor.dims) <= 1


def keeps_words(op: Op) -> bool:
    """True if reshaping the packed words gives the packed words of the reshaped tensor."""
    before, after = op.input(0).channels, op.output.channels
    whole_words = before % BITS_PER_WORD == 0 and after % BITS_PER_WORD == 0
    return before > 0 and after > 0 and (before == after or whole_words) and is_describable(op.output)


def reshape_op(source: Tensor, output: Tensor) -> Op:
    """A RESHAPE of `source` to the dimensions of `output`, at most one of which may be unknown."""
    sizes = np.asarray(output.dims, np.int32)
    if sizes.size and np.all(sizes > 0):
        sizes[0] = -1  # keeps the batch resizable
    shape = constant(derived(output.name, "/shape"), sizes)
    return builtin_op("RESHAPE", [source, shape], output, new_shape=sizes)


def merge_reshapes(graph: Graph, op: Op) -> bool:
    """Merges a reshape with the preceding one into one or none; returns False if it is needed as it is."""
    first = graph.producer(op.input(0))
    source = first.input(0) if first is not None and facts(first).reshapes else op.input(0)
    if not is_describable(op.output):
        return False
    if source.dims == op.output.dims and graph.bypass(op, source):
        return True
    if source is op.input(0):
        return False
    graph.replace(op, reshape_op(source, op.output))
    return True


def layout_op(layout: Layout, source: Tensor, output: Tensor) -> Op:
    """The TRANSPOSE or the reshape of `source` to a layout."""
    if layout.order is not None:
        return transpose_op(source, layout.order, output)
    if is_describable(output):
        return reshape_op(source, output)
    axis = np.asarray(layout.unit_axis, np.int32)
    if len(source.dims) > len(output.dims):
        return builtin_op("SQUEEZE", [source], output, squeeze_dims=axis.reshape(1))
    return builtin_op("EXPAND_DIMS", [source, constant(derived(output.name, "/axis"), axis)], output)
