"""A TRANSPOSE_CONV that reads a sign and has a ±alpha filter becomes a CONV_2D for each phase, or one for all phases. A
DEPTH_TO_SPACE interleaves the outputs of the phases.

A transposed convolution inserts zeros between the pixels of its input, which bits cannot hold. The output pixels of one
phase have the same position in a block of stride × stride. The pixels of a phase use the same subset of taps and none
of the inserted zeros. Each phase is therefore a plain convolution of the input with these taps.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from litebnn.analysis.few_values import sum_of_signs, values_read, why_no_sum
from litebnn.analysis.match import fused_activation, uniform
from litebnn.analysis.quantization import is_quantized
from litebnn.analysis.weights import BinaryParts, binary_parts
from litebnn.contract import Padding
from litebnn.graph import Array, Graph, Op, Tensor, builtin_op, constant, derived, like
from litebnn.rules.build.int8 import replace_in_floats
from litebnn.rules.build.notes import Notes, each
from litebnn.rules.build.ops import as_float
from litebnn.rules.build.signs import crop, holds_signs, pad_with


class _Phase(NamedTuple):
    """A _Phase describes, for one axis, the convolution that computes every stride-th output of the transposed
    convolution.
    """

    # The indices of this convolution's taps in the filter of the transposed convolution, in the order of the input
    # pixels.
    taps: tuple[int, ...]
    # The numbers of zeros by which this convolution's input is padded along the axis, before the input and after it.
    padding: tuple[int, int]


def _phases(size: int, output: int, taps: int, stride: int, padding: int) -> list[_Phase]:
    """Returns the phases of one axis: one for each position of an output in its block of `stride`.

    Output r multiplies tap k with input (r + before - k) / stride if that is an integer. `before` is the number of
    outputs that TFLite crops at the beginning.
    """
    total = max((size - 1) * stride + taps - output, 0)
    before = 0 if padding == Padding.VALID else total // 2
    blocks = -(-output // stride)
    phases = []
    for place in range(stride):
        ahead, first = divmod(place + before, stride)
        own = tuple(range(first, taps, stride))[::-1]
        phases.append(_Phase(own, (len(own) - 1 - ahead, blocks + ahead - size)))
    return phases


@each("TRANSPOSE_CONV")
def split_transposed_convs(graph: Graph, op: Op, notes: Notes) -> bool:
    x = op.input(2)
    if not holds_signs(graph, x):
        few = values_read(graph, op, x)
        if few is None:  # later rounds may still find few values
            return False
        if sum_of_signs(graph, few) is None:
            return notes.left_alone(op, why_no_sum(few))
    parts = _why_not_split(graph, op, x) or binary_parts(graph, op, assume_nonzero=notes.options["assume_nonzero"])
    reason = parts if isinstance(parts, str) else _split(graph, op, parts, notes)
    return notes.left_alone(op, reason) if reason else True


def _why_not_split(graph: Graph, op: Op, x: Tensor) -> str | None:
    """Returns the reason why the op cannot become a convolution of bits; None if there is none. Weights and bias are
    checked elsewhere.
    """
    shape, sizes, options = op.input(1).dims, _asked_sizes(graph, op), op.options
    if op.output.type != "FLOAT32" and not is_quantized(op.output):
        return f"its output is {op.output.type}"
    if shape[3] != x.channels:
        return f"its filter {list(shape)} is not one for {x.channels} input channels"
    if sizes is None or min(x.dims[1:]) < 1 or op.output.dims[1:] != (*sizes, shape[0]):
        return "its output's size is computed when the model runs"
    if options.stride_h != options.stride_w:
        return f"its strides {options.stride_h} and {options.stride_w} differ, and DEPTH_TO_SPACE has one block size"
    if min(shape[1:3]) < options.stride_h:
        return f"its filter {list(shape[1:3])} is smaller than its stride {options.stride_h}"
    return None


def _asked_sizes(graph: Graph, op: Op) -> list[float | None] | None:
    """Returns the output height and width that an operand of the op specifies. The batch size in this operand may be
    unknown until run time.
    """
    asked = op.input(0)
    if asked.array is not None:
        return list(asked.array[1:3])
    packed = graph.producer(asked, "PACK")
    return None if packed is None else [uniform(size) for size in packed.inputs[1:3]]


def _split(graph: Graph, op: Op, parts: BinaryParts, notes: Notes) -> str | None:
    """Replaces a TRANSPOSE_CONV, or returns the reason why it cannot be replaced."""
    stride, x, weights, bias = op.options.stride_h, op.input(2), parts.weights, parts.bias
    rows, columns = (
        _phases(x.dims[axis], op.output.dims[axis], weights.shape[axis], stride, op.options.padding) for axis in (1, 2)
    )
    if any(min(phase.padding) < 0 for phase in (*rows, *columns)):
        return f"its output of {list(op.output.dims[1:3])} leaves out rows or columns of its input"
    notes.took_zeros(op, parts.zeros, weights.size)
    x = as_float(graph, x, before=op)
    op = replace_in_floats(graph, op, [op.input(0), op.input(1), x], notes)
    pairs = [(row, column) for row in rows for column in columns]
    filters = [weights[:, row.taps][:, :, column.taps] for row, column in pairs]
    if len({tuple((len(taps), padding) for taps, padding in pair) for pair in pairs}) == 1:
        # All phases (outputs at the same position in a block of stride * stride pixels) have as many taps and the same
        # padding. One convolution computes the channels of all phases, in the order that DEPTH_TO_SPACE expects.
        pairs, filters, bias = pairs[:1], [np.concatenate(filters)], np.tile(bias, len(filters))
    results = []
    for (row, column), kernel in zip(pairs, filters, strict=True):
        padded = pad_with(graph, x, np.array([row.padding, column.padding]), 0.0, before=op)
        results.append(_convolve(graph, op, notes, padded, kernel, bias))
    _interleave(graph, op, results)
    return None


def _convolve(graph: Graph, op: Op, notes: Notes, x: Tensor, kernel: Array, bias: Array) -> Tensor:
    """Adds a convolution that computes one phase of the transposed convolution (every stride-th output in both axes) or
    all phases, and returns its output.
    """
    name = op.input(1).name
    sizes = (size - taps + 1 for size, taps in zip(x.dims[1:3], kernel.shape[1:3], strict=True))
    result = like(op.output, derived(op.output.name, "/phase"), dims=(op.output.dims[0], *sizes, len(kernel)))
    inputs = [x, constant(name, kernel), constant(derived(name, "/bias"), bias)]
    activation = fused_activation(op)
    conv = builtin_op("CONV_2D", inputs, result, padding=Padding.VALID, fused_activation_function=activation)
    notes.became(op, graph.insert(conv, before=op))
    return result


def _interleave(graph: Graph, op: Op, results: list[Tensor]) -> None:
    """Replaces the TRANSPOSE_CONV by ops that interleave the pixels of all phases, and crop the result. A phase has
    every n-th output pixel along each axis, where n is the stride.
    """
    stride, (batch, height, width, channels) = op.options.stride_h, op.output.dims
    packed = results[0]
    whole_conv = graph.producer(packed)
    if stride == 1 and whole_conv is not None:  # the only phase computes every output pixel
        graph.remove(op)
        graph.set_output(whole_conv, op.output)
        return
    if len(results) > 1:
        packed = like(packed, derived(op.output.name, "/phases"), dims=(*packed.dims[:3], channels * stride * stride))
        graph.insert(builtin_op("CONCATENATION", results, packed, axis=3), before=op)
    whole = (packed.dims[1] * stride, packed.dims[2] * stride)
    if whole == (height, width):
        graph.replace(op, builtin_op("DEPTH_TO_SPACE", [packed], op.output, block_size=stride))
        return
    uncut = like(op.output, derived(op.output.name, "/uncut"), dims=(batch, *whole, channels))
    graph.insert(builtin_op("DEPTH_TO_SPACE", [packed], uncut, block_size=stride), before=op)
    amounts = np.array([(0, whole[0] - height), (0, whole[1] - width)])
    slices = graph.producer(crop(graph, uncut, derived(uncut.name, "/cropped"), amounts, before=op))
    assert slices is not None
    graph.remove(op)
    graph.set_output(slices, op.output)
