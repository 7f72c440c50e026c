"""Checks the tensors and options of litebnn's ops in a graph against docs/ops.md."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import numpy as np

from litebnn.contract import (
    BITS_PER_WORD,
    LCE_BCONV_2D,
    LCE_BMAXPOOL_2D,
    LCE_DEQUANTIZE,
    LCE_QUANTIZE,
    LITEBNN_UNPACK_WEIGHTS,
    MOST_DIMENSIONS,
    MOST_VALUES,
    BConv2DOptions,
    BMaxPool2DOptions,
    Padding,
    decode_options,
)
from litebnn.errors import ConversionError
from litebnn.graph.graph import NUMPY_TYPES, Buffer, Graph, Op, Tensor, packed_words

Dims = tuple[int, ...]

# The library repacks the constants of each op, even if ops share them. The limit on the sum of the ops' bytes is the
# first number, plus the second number times the bytes of the model's constants.
_REPACKED_BYTES, _REPACKED_TIMES = 1 << 24, 16


def check_custom_ops(graph: Graph) -> None:
    """Checks every op of litebnn as the library checks it when it loads a model.

    Raises:
        ConversionError: the library would refuse the model; the message names the op and the tensor, and says what was
            expected.
    """
    left = _REPACKED_BYTES + _REPACKED_TIMES * sum(map(_bytes, {tensor.buffer for tensor in graph.all_tensors()}))
    for index, op in enumerate(graph.ops):
        for mistake in mistakes(op):
            raise ConversionError(f"op {index} ({op.name}): {mistake}")
        left -= sum(_bytes(tensor.buffer) for tensor in op.inputs if tensor is not None and op.name in _CHECKS)
        if left < 0:
            raise ConversionError(f"op {index} ({op.name}): its constants are shared more than {_REPACKED_TIMES} times")


def _bytes(buffer: Buffer) -> int:
    return 0 if buffer.data is None else buffer.data.size


def mistakes(op: Op) -> Iterator[str]:
    """Yields the reasons for which the library would refuse an op. Yields none for valid ops, and for ops that are not
    litebnn's."""
    if op.name not in _CHECKS:
        return
    wanted = _INPUTS.get(op.name, range(1, 2))
    if len(op.inputs) not in wanted or None in op.inputs[: wanted.start] or len(op.outputs) != 1:
        yield f"{len(op.inputs)} inputs and {len(op.outputs)} outputs, expected {wanted.start} and 1 at least"
        return
    try:
        decode_options(op.name, op.custom_options)
    except ConversionError as error:
        yield str(error)
        return
    unsound = [mistake for tensor in (*op.inputs, op.output) if tensor is not None for mistake in _values(tensor)]
    yield from unsound or _CHECKS[op.name](op)


def _quantize(op: Op) -> Iterator[str]:
    source, bits = op.input(0), op.output
    yield from _type(source, "FLOAT32", "INT8", "BOOL")
    yield from _zero_point(source)
    yield from _type(bits, "INT32")
    yield from _dims(bits, _packed(source.dims))


def _dequantize(op: Op) -> Iterator[str]:
    bits, result = op.input(0), op.output
    yield from _type(bits, "INT32")
    yield from _type(result, "FLOAT32", "INT8", "BOOL")
    yield from _grid(result)
    yield from _dims(bits, _packed(result.dims))


def _bconv_2d(op: Op) -> Iterator[str]:
    bits, kernel, result = op.input(0), op.input(1), op.output
    options = decode_options(LCE_BCONV_2D, op.custom_options)
    assert isinstance(options, BConv2DOptions)
    yield from _type(bits, "INT32")
    yield from _type(kernel, "INT32")
    yield from _type(result, "FLOAT32", "INT8", "INT32")
    yield from _grid(result)
    if len(bits.dims) != 4 or len(kernel.dims) != 4:
        yield f"shapes {list(bits.dims)} and {list(kernel.dims)}, expected 4 dimensions each"
        return
    if not kernel.is_constant:
        yield f'"{kernel.name}" is not constant'
        return
    yield from _words(options.channels_in, bits, kernel)
    channels_out, *taps, words = kernel.shape
    group_channels = min(options.channels_in, words * BITS_PER_WORD)
    for index, kind in ((2, "FLOAT32"), (3, "FLOAT32"), (4, "INT32")):
        values = op.optional(index)
        if values is not None:
            yield from _type(values, kind)
            yield from _dims(values, (channels_out,))
            if not values.is_constant:
                yield f'"{values.name}" is not constant'
    is_packed = result.type == "INT32"
    if is_packed and op.optional(4) is None:
        yield f'"{result.name}" is packed, but there are no thresholds'
    if is_packed and options.pads_zeros and group_channels % 2:
        yield f"{group_channels} channels a group, expected an even number with packed output and padding with zeros"
    strides = options.stride_height, options.stride_width
    dilations = options.dilation_height_factor, options.dilation_width_factor
    padded = [
        size if size < 0 else size + sum(amounts)
        for size, amounts in zip(bits.dims[1:3], options.explicit_padding or ((0, 0), (0, 0)), strict=True)
    ]
    is_same = options.padding == Padding.SAME
    windows = list(zip(padded, taps, strides, dilations, strict=True))
    yield from (mistake for window in windows for mistake in _slides(*window, is_same))
    channels = packed_words(channels_out) if is_packed else channels_out
    yield from _dims(result, (bits.dims[0], *(_steps(*window, is_same) for window in windows), channels))


def _words(channels: int, bits: Tensor, kernel: Tensor) -> Iterator[str]:
    """Checks that the words of the input and of the filter (OHWI) fit the channels and the groups. Also checks that the
    filter is small enough for the sums.
    """
    channels_out, height, width, words = kernel.shape
    whole = packed_words(channels)
    if bits.channels != whole:
        yield f'"{bits.name}" has {bits.channels} words, expected {whole} for {channels} channels'
    groups = 1 if words == whole else channels // (words * BITS_PER_WORD)
    if words != whole and channels % (words * BITS_PER_WORD):
        yield f'"{kernel.name}" has {words} words, expected {whole} or a divisor for groups'
    elif channels_out % groups:
        yield f'"{kernel.name}" has {channels_out} output channels, expected a multiple of {groups} groups'
    elif height * width * (channels // groups) > MOST_VALUES:
        yield f'"{kernel.name}" has shape {list(kernel.dims)}, expected {MOST_VALUES} bits at most for a channel'


def _bmaxpool_2d(op: Op) -> Iterator[str]:
    options = decode_options(LCE_BMAXPOOL_2D, op.custom_options)
    assert isinstance(options, BMaxPool2DOptions)
    yield from _type(op.input(0), "INT32")
    yield from _type(op.output, "INT32")
    if len(op.input(0).dims) != 4:
        yield f'"{op.input(0).name}" has shape {list(op.input(0).dims)}, expected 4 dimensions'
        return
    batch, height, width, words = op.input(0).dims
    is_same = options.padding == Padding.SAME
    windows = (
        (height, options.filter_height, options.stride_height, 1),
        (width, options.filter_width, options.stride_width, 1),
    )
    yield from (mistake for window in windows for mistake in _slides(*window, is_same))
    yield from _dims(op.output, (batch, *(_steps(*window, is_same) for window in windows), words))


def _unpack_weights(op: Op) -> Iterator[str]:
    signs, scales, zeros, result = op.input(0), op.input(1), op.optional(2), op.output
    yield from _type(signs, "INT32")
    yield from _type(scales, "FLOAT32")
    yield from _type(result, "FLOAT32")
    yield from (f'"{t.name}" is not constant' for t in op.inputs if t is not None and not t.is_constant)
    if zeros is not None:
        yield from _type(zeros, "INT32")
        yield from _dims(zeros, signs.dims)
    if len(signs.dims) != 2 or not result.shape or -1 in result.dims:
        yield f'"{result.name}" has shape {list(result.dims)} and its signs {list(signs.dims)}, expected rows of signs'
        return
    rows, values = result.shape[0], math.prod(result.shape[1:])
    yield from _dims(signs, (rows, packed_words(values)))
    counts = (rows, result.shape[-1]) if rows == 1 else (rows,)
    if math.prod(scales.shape) not in counts:
        yield f'"{scales.name}" has shape {list(scales.dims)}, expected a value for each of {counts[-1]} channels'


def _steps(size: int, taps: int, stride: int, dilation: int, is_same: bool) -> int:
    """The output size of a sliding window along one axis; -1 if the input size is unknown."""
    if size < 0:
        return -1
    return -(-size // stride) if is_same else (size - (taps - 1) * dilation - 1) // stride + 1


def _slides(size: int, taps: int, stride: int, dilation: int, is_same: bool) -> Iterator[str]:
    """Checks along one axis that a window fits into the input, and that the end of the last window fits into int32."""
    reach = (taps - 1) * dilation + 1
    if 0 <= size < reach and not is_same:
        yield f"its filter reaches over {reach}, expected {size} at most"
    elif size >= 0 and (_steps(size, taps, stride, dilation, is_same) - 1) * stride + reach > MOST_VALUES:
        yield f"its filter reaches beyond {MOST_VALUES}"


def _packed(dims: Dims) -> Dims:
    return (*dims[:-1], packed_words(dims[-1])) if dims else ()


def _values(tensor: Tensor) -> Iterator[str]:
    """Checks an input or output of any op: its number of values is limited, and a constant must be a plain array."""
    if len(tensor.dims) > MOST_DIMENSIONS:
        yield f'"{tensor.name}" has {len(tensor.dims)} dimensions, expected at most {MOST_DIMENSIONS}'
    elif 0 in tensor.dims or math.prod(max(size, 1) for size in tensor.dims) > MOST_VALUES:
        yield f'"{tensor.name}" has shape {list(tensor.dims)}, expected 1 to {MOST_VALUES} values'
    elif tensor.is_sparse or (tensor.is_variable and tensor.is_constant):
        yield f'"{tensor.name}" is sparse or variable, expected plain values'
    elif tensor.buffer.data is not None and tensor.type in NUMPY_TYPES:
        value_bytes = NUMPY_TYPES[tensor.type].itemsize
        if tensor.buffer.data.ctypes.data % value_bytes:
            yield f'"{tensor.name}" lies at an address that is no multiple of {value_bytes}'


def _type(tensor: Tensor, *expected: str) -> Iterator[str]:
    if tensor.type not in expected:
        yield f'"{tensor.name}" is {tensor.type}, expected {" or ".join(expected)}'


def _grid(tensor: Tensor) -> Iterator[str]:
    """Checks that an INT8 output has one finite scale above 0, and a zero point."""
    parameters = tensor.per_tensor_quantization
    if tensor.type == "INT8" and (parameters is None or not math.isfinite(parameters[0])):
        yield f'"{tensor.name}" is INT8 without a scale and a zero point'
    yield from _zero_point(tensor)


def _zero_point(tensor: Tensor) -> Iterator[str]:
    """Checks the zero point of a tensor. If a tensor does not have exactly one zero point, runtimes use 0."""
    points = np.zeros(1, np.int64) if tensor.quantization is None else tensor.quantization.zero_point
    if tensor.type == "INT8" and points.size == 1 and not -128 <= points[0] <= 127:
        yield f'"{tensor.name}" has zero point {points[0]}, expected -128 to 127'


def _dims(tensor: Tensor, expected: Dims) -> Iterator[str]:
    """Checks the dimensions of a tensor. A dimension that is unknown in the tensor or in the expected shape (-1)
    matches any number.
    """
    fits = len(tensor.dims) == len(expected) and all(
        found < 0 or wanted < 0 or found == wanted for found, wanted in zip(tensor.dims, expected, strict=True)
    )
    if not fits or not expected:
        yield f'"{tensor.name}" has shape {list(tensor.dims)}, expected {list(expected)}'


_INPUTS = {LCE_BCONV_2D: range(2, 6), LITEBNN_UNPACK_WEIGHTS: range(2, 4)}
_CHECKS: dict[str, Callable[[Op], Iterator[str]]] = {
    LCE_QUANTIZE: _quantize,
    LCE_DEQUANTIZE: _dequantize,
    LCE_BCONV_2D: _bconv_2d,
    LCE_BMAXPOOL_2D: _bmaxpool_2d,
    LITEBNN_UNPACK_WEIGHTS: _unpack_weights,
}
