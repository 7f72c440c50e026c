"""The output shapes of layers: convolutions, pools, dense and recurrent layers, and litebnn's own ops."""

from __future__ import annotations

import math
from itertools import zip_longest

from litebnn.contract import BConv2DOptions, BMaxPool2DOptions, Padding
from litebnn.graph.graph import packed_words
from litebnn.safety.shapes.call import Call, Shape


def steps(size: int, taps: int, stride: int, dilation: int, padding: int | None) -> int:
    """The output size of a sliding window along one axis."""
    return -(-size // stride) if padding == Padding.SAME else (size - (taps - 1) * dilation - 1) // stride + 1


def slide(call: Call, taps: Shape, channels: int, keys: str = "hw") -> Shape:
    batch, *sizes, _ = call.shape(0)
    spatial = [
        steps(
            size,
            tap,
            call.option(f"stride_{key}"),
            int(getattr(call.op.options, f"dilation_{key}_factor", 1)),
            call.option("padding"),
        )
        for size, tap, key in zip(sizes, taps, keys, strict=True)
    ]
    return batch, *spatial, channels


def conv(call: Call) -> Shape:
    channels, *taps, _ = call.shape(1)
    return slide(call, tuple(taps), channels)


def depthwise(call: Call) -> Shape:
    _, *taps, channels = call.shape(1)
    return slide(call, tuple(taps), channels)


def conv_3d(call: Call) -> Shape:
    *taps, _, channels = call.shape(1)
    return slide(call, tuple(taps), channels, "dhw")


def pool(call: Call) -> Shape:
    return slide(call, (call.option("filter_height"), call.option("filter_width")), call.shape(0)[-1])


def bconv(call: Call) -> Shape:
    options = BConv2DOptions.decode(call.op.custom_options)
    (batch, *sizes, _), (channels, *taps, _) = call.shape(0), call.shape(1)
    around = options.explicit_padding or ((0, 0), (0, 0))
    spatial = [
        steps(size + sum(amounts), tap, stride, dilation, options.padding)
        for size, amounts, tap, stride, dilation in zip(
            sizes, around, taps, options.strides, options.dilations, strict=True
        )
    ]
    return batch, *spatial, packed_words(channels) if call.op.outputs[0].type == "INT32" else channels


def bmaxpool(call: Call) -> Shape:
    options = BMaxPool2DOptions.decode(call.op.custom_options)
    batch, *sizes, words = call.shape(0)
    windows = zip(sizes, options.taps, options.strides, strict=True)
    return batch, *(steps(*window, 1, options.padding) for window in windows), words


def pack_bits(call: Call) -> Shape:
    return *call.shape(0)[:-1], packed_words(call.shape(0)[-1])


def unpack_bits(call: Call) -> Shape:
    return *call.shape(0)[:-1], call.op.outputs[0].shape[-1]


def unpack_weights(call: Call) -> Shape:
    return call.shape(0)[0], *call.op.outputs[0].shape[1:]


def dense(call: Call) -> Shape:
    data, (units, depth) = call.shape(0), call.shape(1)
    if getattr(call.op.options, "keep_num_dims", False):
        return *data[:-1], units
    return math.prod(data) // depth, units


def matmul(call: Call) -> Shape:
    (*left, rows, inner), (*right, depth, columns) = call.shape(0), call.shape(1)
    lead = [b if a == 1 else a for a, b in zip_longest(left[::-1], right[::-1], fillvalue=1)][::-1]
    return *lead, inner if call.option("adj_x") else rows, depth if call.option("adj_y") else columns


def recurrent(call: Call) -> Shape:
    return *call.shape(0)[:-1], call.shape(1)[0]


def long_recurrent(call: Call) -> Shape:
    recurrent, projection = 6, 16
    if call.op.optional(projection) is not None:
        return *call.shape(0)[:-1], call.shape(projection)[0]
    return *call.shape(0)[:-1], call.shape(recurrent)[1]


def filter_memory(call: Call) -> Shape:
    return call.shape(0)[0], call.shape(1)[0] // call.option("rank")
