"""Ranges for post-training int8 quantization of a float network's first convolutions, without samples."""

from __future__ import annotations

import itertools
from typing import NamedTuple

import numpy as np

from litebnn.analysis.match import floats, fused_activation
from litebnn.analysis.quantization import Range, Ranges, parameters_of_range, symmetric_scale
from litebnn.contract import ACTIVATION_RANGES, Activation
from litebnn.errors import ConversionError
from litebnn.graph import Array, Graph, Model, Op, Tensor, constant, facts
from litebnn.rules.build.notes import Notes

_MOST_CHANNELS = 4
# The range of a convolution's outputs for synthetic input windows is multiplied by this factor. The product is then
# limited to the range that the outputs have for all possible images.
_MARGIN = 1.5
# Two limits: the number of synthetic input windows of one kind, and the number of values in all these windows. The
# second limit also holds for the number of outputs that a convolution has for these windows.
_WINDOWS, _MOST_VALUES = 2048, 1 << 22
# Side lengths in pixels. Some synthetic input windows consist of squares with one of these side lengths, and each
# square has one random color.
_SQUARES = (3, 4, 6, 8, 16)


class _Stem(NamedTuple):
    """A first convolution of 1 to 4 channels with float constants."""

    op: Op
    weights: Array  # float32
    bias: Array  # float64
    clamp: Activation  # the fused activation


def ranges_of_stem(model: Model, limits: Range, notes: Notes) -> Ranges:
    """The ranges of the first subgraph's images, and of the outputs of the convolutions that read them.

    Args:
        model: the model, whose half-precision weights are changed to float32.
        limits: the (min, max) of the images.
        notes: receive each convolution's ranges.

    Raises:
        ConversionError: no float convolution of 1 to 4 channels reads an input, or another op reads its image too.
    """
    graph = model.graphs[0]
    ranges: Ranges = {}
    for image in dict.fromkeys(graph.inputs):
        stems, others = _readers(graph, image)
        if stems and others:
            raise ConversionError(f'stem: expected only convolutions to read "{image.name}", found {others[0]} too')
        for stem in stems:
            ranges[image] = limits
            output, found = _range_of_output(graph, stem, limits, notes)
            ranges[output] = found
    if not ranges:
        raise ConversionError(_no_stem(graph))
    return ranges


def _no_stem(graph: Graph) -> str:
    readers = (f'found {_readers(graph, image)[1][0]} after "{image.name}"' for image in graph.inputs)
    found = next(readers, "found no input")
    return f"stem: expected a CONV_2D of 1 to {_MOST_CHANNELS} channels with float constants to read an input, {found}"


def _readers(graph: Graph, image: Tensor) -> tuple[list[_Stem], list[str]]:
    """Finds the stems that read an image, perhaps after ops that keep its range. Also returns the names of the image's
    other readers.
    """
    stems, others, waiting = [], [], [image]
    while waiting:
        tensor = waiting.pop()
        readers = graph.consumers(tensor)
        if tensor in graph.outputs or not readers:
            others.append("no op" if not readers else "an output")
        for reader in readers:
            rule = facts(reader).int8
            if stem := _stem(graph, reader, tensor):
                stems.append(stem)
            elif rule is not None and rule.same_parameters and reader.name != "CONCATENATION":
                waiting.append(reader.output)
            else:
                others.append(_described(reader))
    return stems, others


def _described(op: Op) -> str:
    channels = op.input(0).channels if op.name == "CONV_2D" else 0
    return f"{op.name} of {channels} channels" if channels > 0 else op.name


def _stem(graph: Graph, op: Op, image: Tensor) -> _Stem | None:
    """Reads a stem's constants. None if `op` is no stem that reads the image."""
    if op.name != "CONV_2D" or op.inputs[0] is not image or image.type != "FLOAT32":
        return None
    weights, bias = _values(graph, op.input(1)), op.optional(2)
    if weights is None or weights.ndim != 4 or not weights.size:
        return None
    offsets, clamp = np.zeros(len(weights)) if bias is None else _values(graph, bias), fused_activation(op)
    if offsets is None or clamp is None:
        return None
    if not np.all(np.isfinite(weights)) or not np.all(np.isfinite(offsets)):
        return None
    is_narrow = 1 <= image.channels == weights.shape[3] <= _MOST_CHANNELS
    return _Stem(op, weights, offsets.astype(np.float64), clamp) if is_narrow else None


def _values(graph: Graph, tensor: Tensor | None) -> Array | None:
    """The values of a float32 constant, or of a float16 one that is dequantized."""
    op = graph.producer(tensor, "DEQUANTIZE")
    if op is None:
        return floats(tensor)
    half = op.input(0).array
    return None if half is None or half.dtype != np.float16 else half.astype(np.float32)


def _check_bias(stem: _Stem, limits: Range) -> None:
    scales = symmetric_scale(stem.weights, 0).astype(np.float64) * parameters_of_range(*limits).scale[0]
    if np.abs(stem.bias / scales).max() > np.iinfo(np.int32).max:
        raise ConversionError(
            f'stem: the bias of "{stem.op.output.name}" does not fit into 32 bits in its weights\' scale'
        )


def _range_of_output(graph: Graph, stem: _Stem, limits: Range, notes: Notes) -> tuple[Tensor, Range]:
    """The output of a stem and its range. If a ReLU is the only reader of the output, the output of the ReLU
    instead.
    """
    for index, values in ((1, stem.weights), (2, stem.bias.astype(np.float32))):
        tensor = stem.op.optional(index)
        if tensor is not None and not tensor.is_constant:
            graph.set_input(stem.op, index, constant(tensor.name, values))
    _check_bias(stem, limits)
    reader = graph.sole_consumer(stem.op.output)
    relu = reader if reader is not None and facts(reader).clamp is not None else None
    bound, likely = _bound(stem, limits), _likely_range(stem, limits)
    for clamp in (stem.clamp, None if relu is None else facts(relu).clamp):
        if clamp is not None:
            bound, likely = (_clamped(each, ACTIVATION_RANGES[clamp]) for each in (bound, likely))
    chosen = _clamped((likely[0] * _MARGIN, likely[1] * _MARGIN), bound)
    notes.warn(stem.op, _line(limits, chosen, bound))
    return (stem.op if relu is None else relu).output, chosen


def _line(limits: Range, chosen: Range, bound: Range) -> str:
    inputs, outputs, most = (f"{low:.4g} to {high:.4g}" for low, high in (limits, chosen, bound))
    why = "the bound for any input" if chosen == bound else f"estimated, the bound for any input is {most}"
    return f"it is int8 for inputs from {inputs}, and saturates outside {outputs}: {why}"


def _clamped(limits: Range, ends: Range) -> Range:
    low, high = (float(np.clip(limit, *ends)) for limit in limits)
    return low, high


def _bound(stem: _Stem, limits: Range) -> Range:
    """The range of a convolution's sums over all possible images in the given range, padded with zeros or not. The
    range includes zero.
    """
    low, high = min(limits[0], 0.0), max(limits[1], 0.0)
    by_channel = stem.weights.reshape(len(stem.weights), -1).astype(np.float64)
    products = np.stack([by_channel * low, by_channel * high])
    least, most = products.min(axis=0).sum(axis=1) + stem.bias, products.max(axis=0).sum(axis=1) + stem.bias
    return min(float(least.min()), 0.0), max(float(most.max()), 0.0)


def _likely_range(stem: _Stem, limits: Range) -> Range:
    """The range of a convolution's sums for the synthetic input windows of `_windows`. The range includes zero."""
    weights = stem.weights
    count = max(min(_WINDOWS, _MOST_VALUES // max(weights.shape[0], weights[0].size)), 1)
    windows = np.concatenate(_windows(count, weights.shape[1:], limits)).astype(np.float64)
    sums = windows @ weights.reshape(len(weights), -1).T.astype(np.float64) + stem.bias
    return min(float(sums.min()), 0.0), max(float(sums.max()), 0.0)


def _windows(count: int, shape: tuple[int, ...], limits: Range) -> list[Array]:
    """Makes synthetic input windows for a convolution, [n, values]: `count` windows of noise, and one window of each
    saturated color. For each side length in `_SQUARES`, it makes `count` windows of squares in random saturated colors.
    """
    rng = np.random.default_rng(0)
    height, width, channels = shape
    kinds = [rng.uniform(*limits, (count, height, width, channels))]
    for side in _SQUARES:
        sizes = (height - 2) // side + 2, (width - 2) // side + 2
        colors = rng.choice(limits, (count, *sizes, channels))
        first = rng.integers(0, side, (2, count, 1))
        rows, columns = ((first[i] + np.arange(size)) // side for i, size in enumerate((height, width)))
        kinds.append(colors[np.arange(count)[:, None, None], rows[:, :, None], columns[:, None, :]])
    colors = np.array(list(itertools.product(limits, repeat=channels)))
    kinds.append(np.broadcast_to(colors[:, None, None, :], (len(colors), height, width, channels)))
    return [kind.reshape(len(kind), -1) for kind in kinds]
