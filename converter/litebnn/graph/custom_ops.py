"""What the ops of litebnn ask of their tensors and options (docs/ops.md), held against a graph before it runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from litebnn.contract import (
    BITS_PER_WORD,
    LCE_BCONV_2D,
    LCE_BMAXPOOL_2D,
    LCE_DEQUANTIZE,
    LCE_QUANTIZE,
    BConv2DOptions,
    BMaxPool2DOptions,
    Padding,
    decode_options,
)
from litebnn.errors import ConversionError
from litebnn.graph.graph import Graph, Op, Tensor, packed_words

Dims = tuple[int, ...]


def check_custom_ops(graph: Graph) -> None:
    """Looks at every op of litebnn as the library does when it loads a model.

    Raises:
        ConversionError: the library would refuse the model; the message names op, tensor and what was expected.
    """
    for index, op in enumerate(graph.ops):
        for mistake in mistakes(op):
            raise ConversionError(f"op {index} ({op.name}): {mistake}")


def mistakes(op: Op) -> Iterator[str]:
    """For what the library would refuse an op; nothing for one of litebnn's that it takes, and for others."""
    if op.name not in _CHECKS:
        return
    wanted = _INPUTS.get(op.name, range(1, 2))
    if len(op.inputs) not in wanted or None in op.inputs[: wanted.start] or len(op.outputs) != 1:
        yield f"{len(op.inputs)} inputs and {len(op.outputs)} outputs, expected {wanted.start} and 1 at least"
        return
    try:
        decode_options(op.name, op.custom_options)
    except ValueError as error:
        yield str(error)
        return
    yield from _CHECKS[op.name](op)


def _quantize(op: Op) -> Iterator[str]:
    source, bits = op.input(0), op.output
    yield from _type(source, "FLOAT32", "INT8", "BOOL")
    yield from _type(bits, "INT32")
    yield from _dims(bits, _packed(source.dims))


def _dequantize(op: Op) -> Iterator[str]:
    bits, result = op.input(0), op.output
    yield from _type(bits, "INT32")
    yield from _type(result, "FLOAT32", "INT8", "BOOL")
    yield from _dims(bits, _packed(result.dims))


def _bconv_2d(op: Op) -> Iterator[str]:
    bits, kernel, result = op.input(0), op.input(1), op.output
    options = decode_options(LCE_BCONV_2D, op.custom_options)
    assert isinstance(options, BConv2DOptions)
    yield from _type(bits, "INT32")
    yield from _type(kernel, "INT32")
    yield from _type(result, "FLOAT32", "INT8", "INT32")
    if len(bits.dims) != 4 or len(kernel.dims) != 4:
        yield f"shapes {list(bits.dims)} and {list(kernel.dims)}, expected 4 dimensions each"
        return
    channels_out, *taps, words = kernel.dims
    channels_in = options.channels_in
    whole = packed_words(channels_in)
    if bits.channels != whole:
        yield f'"{bits.name}" has {bits.channels} words, expected {whole} for {channels_in} channels'
    elif words != whole and channels_in % (words * BITS_PER_WORD):
        yield f'"{kernel.name}" has {words} words, expected {whole} or a divisor for groups'
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
    strides = options.stride_height, options.stride_width
    dilations = options.dilation_height_factor, options.dilation_width_factor
    if min(*strides, *dilations) < 1:
        yield f"its strides {strides} and dilations {dilations} are not all 1 or more"
        return
    padded = [
        size if size < 0 else size + sum(amounts)
        for size, amounts in zip(bits.dims[1:3], options.explicit_padding or ((0, 0), (0, 0)), strict=True)
    ]
    is_same = options.padding == Padding.SAME
    sizes = [_window(*axis, is_same) for axis in zip(padded, taps, strides, dilations, strict=True)]
    channels = packed_words(channels_out) if is_packed else channels_out
    yield from _dims(result, (bits.dims[0], *sizes, channels))


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
    if min(options.stride_height, options.stride_width) < 1:
        yield f"its strides ({options.stride_height}, {options.stride_width}) are not both 1 or more"
        return
    sizes = (
        _window(height, options.filter_height, options.stride_height, 1, is_same),
        _window(width, options.filter_width, options.stride_width, 1, is_same),
    )
    yield from _dims(op.output, (batch, *sizes, words))


def _window(size: int, taps: int, stride: int, dilation: int, is_same: bool) -> int:
    """The output size of a sliding window along one axis, -1 where the input's is not known."""
    if size < 0:
        return -1
    return -(-size // stride) if is_same else (size - (taps - 1) * dilation - 1) // stride + 1


def _packed(dims: Dims) -> Dims:
    return (*dims[:-1], packed_words(dims[-1])) if dims else ()


def _type(tensor: Tensor, *expected: str) -> Iterator[str]:
    if tensor.type not in expected:
        yield f'"{tensor.name}" is {tensor.type}, expected {" or ".join(expected)}'
    elif tensor.type == "INT8" and tensor.per_tensor_quantization is None:
        yield f'"{tensor.name}" is INT8 without a scale and a zero point'


def _dims(tensor: Tensor, expected: Dims) -> Iterator[str]:
    """What is not known on one side or the other (-1) is right."""
    fits = len(tensor.dims) == len(expected) and all(
        found < 0 or wanted < 0 or found == wanted for found, wanted in zip(tensor.dims, expected, strict=True)
    )
    if not fits or not expected:
        yield f'"{tensor.name}" has shape {list(tensor.dims)}, expected {list(expected)}'


_INPUTS = {LCE_BCONV_2D: range(2, 6)}
_CHECKS: dict[str, Callable[[Op], Iterator[str]]] = {
    LCE_QUANTIZE: _quantize,
    LCE_DEQUANTIZE: _dequantize,
    LCE_BCONV_2D: _bconv_2d,
    LCE_BMAXPOOL_2D: _bmaxpool_2d,
}
