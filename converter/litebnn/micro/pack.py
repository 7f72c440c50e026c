"""Packs the constants of a binary convolution for a kernel of ops/micro, in the order in which this kernel reads them.

`ops/micro/litebnn_micro.h` describes these orders. A dense layer is packed as a convolution of a 1x1 image with a 1x1
filter.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from litebnn.contract import BITS_PER_WORD

Array = npt.NDArray[Any]

# The largest number of bits of a counter, for kernels that keep counters as bit planes (one word for each bit of 32
# counters).
COUNT_BITS = 16
# The number of additional words of scratch memory. They hold carries of bit-sliced additions that a kernel has not yet
# added to its counters.
CARRY_REST = 3
INT32 = np.iinfo(np.int32)


@dataclass(frozen=True)
class Geometry:
    """The sizes of a convolution, with the names of the C structure `litebnn_bconv2d`. Channels are counted without
    padding bits."""

    input_height: int
    input_width: int
    channels_in: int
    output_height: int
    output_width: int
    channels_out: int
    groups: int = 1
    filter_height: int = 1
    filter_width: int = 1
    stride_height: int = 1
    stride_width: int = 1
    dilation_height: int = 1
    dilation_width: int = 1
    pad_top: int = 0
    pad_left: int = 0
    zero_padding: bool = False

    @property
    def group_inputs(self) -> int:
        return self.channels_in // self.groups

    @property
    def group_outputs(self) -> int:
        return self.channels_out // self.groups

    @property
    def depth(self) -> int:
        """The number of products in the sum for one output value."""
        return self.filter_height * self.filter_width * self.group_inputs


@dataclass(frozen=True)
class Kernel:
    """A kernel of ops/micro. It has the fields of the C structure `litebnn_kernel`, and four fields for the
    exporter."""

    lanes: int
    record_words: int
    carry_words: int
    weight_words: int
    first_planes: int  # planes to which the kernel adds without storing carries
    carried_planes: int  # planes to which the kernel adds stored carries at once
    word_multiple: int  # the number of words of a window is rounded up to a multiple of it
    weights: Callable[[Array], Array]  # [..., channels of a block, window bits] -> [..., words of a block]


@dataclass(frozen=True)
class Packed:
    """The fields of the C structure `litebnn_bconv2d` that depend on the kernel. A field that is None becomes a null
    pointer.
    """

    kernel: str
    weights: npt.NDArray[np.uint32]
    presets: npt.NDArray[np.uint32]
    depths: npt.NDArray[np.int32]
    row_class: npt.NDArray[np.uint16] | None
    column_class: npt.NDArray[np.uint16] | None
    planes: int
    window_words: int
    tap_bits: int
    scratch_words: int


def words_of(bits: Array) -> npt.NDArray[np.uint32]:
    """Packs bits along the last axis, whose length is a multiple of 32. The first bit is the least significant one."""
    little = np.packbits(bits.astype(np.uint8), axis=-1, bitorder="little")
    return np.ascontiguousarray(little).view("<u4").astype(np.uint32)


def bits_of(words: Array, count: int) -> npt.NDArray[np.uint8]:
    """Unpacks the first `count` bits along the last axis of packed words."""
    little = np.ascontiguousarray(words.astype("<u4", casting="unsafe")).view(np.uint8)
    return np.unpackbits(little, axis=-1, count=count, bitorder="little")


def _lanes(bits: Array) -> npt.NDArray[np.uint32]:
    """Transposes bits [..., lanes, n] to words [..., n, lanes / 32]. The 32 bits of each word then belong to 32
    different channels.
    """
    return words_of(np.swapaxes(bits, -1, -2))


def _flat(words: Array) -> Array:
    """Reshapes words to blocks of channels, [groups, blocks, words of a block]."""
    return words.reshape(*words.shape[:2], -1)


# The order of the 32 bits in a word of weights, as the kernels read them.
BIT_ORDER = np.arange(BITS_PER_WORD).reshape(4, 8).T.reshape(-1)


def _pair_weights(bits: Array) -> Array:
    words = bits.reshape(*bits.shape[:-1], -1, BITS_PER_WORD)[..., BIT_ORDER]
    lanes = _lanes(words.reshape(bits.shape))
    lanes[..., 1::2, :] ^= lanes[..., 0::2, :]
    return _flat(lanes)


def _triple_weights(bits: Array) -> Array:
    lanes = _lanes(bits)[..., 0]
    a, b, c = np.moveaxis(lanes.reshape(*lanes.shape[:2], -1, 3, BITS_PER_WORD), -2, 0)
    even_inputs = ((a, b, c), (a, ~b, ~c), (~a, b, ~c), (~a, ~b, c))
    carries = [(x & y) | (y & z) | (x & z) for x, y, z in even_inputs]
    return _flat(np.stack([a ^ b ^ c, *carries], axis=-1)[..., BIT_ORDER, :])


def _popcount_weights(bits: Array) -> Array:
    return _flat(words_of(bits))


KERNELS = {
    "popcount": Kernel(1, 0, 0, 3, 0, 0, 1, _popcount_weights),
    "pairs": Kernel(32, 0, 1, 96, 5, 3, 1, _pair_weights),
    "pairs_of_masks": Kernel(32, 24, 1, 96, 5, 3, 1, _pair_weights),
    "triples": Kernel(32, 16, 2, 160, 4, 3, 3, _triple_weights),
    "helium": Kernel(128, 0, 16, 384, 3, 2, 1, _pair_weights),
}


# For each lane (bit of a word), the output channel that it belongs to. Kernels convert bit-sliced counters to numbers
# in the order of lanes 0, 16, 8, 24, 1, 17, ...
CHANNELS_OF_LANES = np.argsort(np.add.outer(np.arange(8), (0, 16, 8, 24)).reshape(-1))


def pack_bconv2d(kernel: str, geometry: Geometry, filters: Array, thresholds: Array | None) -> Packed:
    """Packs a layer's filters and thresholds for one kernel.

    `kernel` is a name of `KERNELS`. `filters` are packed words of the model file, [channels_out, height, width, words
    of a group]. `thresholds` is an int32 for each output channel, if the output is bits; None for int8 and float.

    Raises:
        ValueError: the counters of the kernel are too small for this layer, or an odd number of channels is padded with
        zeros.
    """
    way = KERNELS[kernel]
    taps = geometry.filter_height * geometry.filter_width
    bits = bits_of(filters.reshape(geometry.channels_out, taps, -1), geometry.group_inputs)
    window_words = -(-geometry.depth // BITS_PER_WORD)
    window_words += -window_words % way.word_multiple
    blocks = -(-geometry.group_outputs // way.lanes)

    def by_block(channels: Array) -> Array:
        """Splits an axis of channels into groups, blocks of a group and lanes of a block. Missing channels become
        zeros.
        """
        grouped = channels.reshape(*channels.shape[:-1], geometry.groups, geometry.group_outputs)
        rest = blocks * way.lanes - geometry.group_outputs
        filled = np.pad(grouped, [(0, 0)] * (grouped.ndim - 1) + [(0, rest)])
        if thresholds is None and way.lanes > 1:
            filled = filled.reshape(*filled.shape[:-1], -1, BITS_PER_WORD)[..., CHANNELS_OF_LANES]
        return filled.reshape(*grouped.shape[:-1], blocks, way.lanes)

    windows = np.zeros((geometry.channels_out, window_words * BITS_PER_WORD), np.uint8)
    windows[:, : geometry.depth] = bits.reshape(geometry.channels_out, -1)
    weights = way.weights(np.moveaxis(by_block(windows.T), 0, -1))

    classes, row_class, column_class = _classes(geometry)
    padded, ones = _padded(geometry, classes, bits)
    if thresholds is None:
        # The start values of the counters (`presets`) make padded taps count the same in every channel. Therefore all
        # channels have the same depth (number of products).
        presets = ones.max(axis=1, keepdims=True) - ones
        depths = geometry.depth - padded + 2 * ones.max(axis=1)
    else:
        if np.any(padded % 2):
            raise ValueError(f"{geometry.group_inputs} channels that are padded with zeros: an even number is expected")
        presets = np.clip(thresholds.astype(np.int64) + ones - padded[:, None] // 2, INT32.min, INT32.max)
        depths = np.zeros(len(classes), np.int64)
    planes = 0
    if way.lanes > 1:
        bits_of_count = geometry.depth.bit_length()
        if bits_of_count > COUNT_BITS:
            raise ValueError(f"{geometry.depth} products: the kernel {kernel} counts to {2**COUNT_BITS - 1}")
        planes = way.first_planes
        planes += max(-(-(bits_of_count - planes) // way.carried_planes), 0) * way.carried_planes
        in_planes = _threshold_planes(presets, planes) if thresholds is not None else _summand_planes(presets, planes)
        # Kernels read the bit planes of a block of channels one after the other. Therefore the axis of the planes moves
        # before the axis of the lanes.
        presets = np.moveaxis(words_of(by_block(in_planes)), 0, -2)
    records = -(-window_words // 3) * way.record_words
    numbers = max(-(-way.lanes // 2), -(-geometry.group_outputs // BITS_PER_WORD))
    return Packed(
        kernel,
        weights.reshape(-1),
        presets.astype(np.int64).astype(np.uint32).reshape(-1),
        depths.astype(np.int32),
        row_class,
        column_class,
        planes,
        window_words,
        geometry.group_inputs,
        window_words * (1 + way.carry_words) + CARRY_REST + records + numbers,
    )


def _threshold_planes(thresholds: Array, planes: int) -> Array:
    """The start values of bit-sliced counters. A counter with such a start value overflows exactly if its count exceeds
    the threshold of its channel.

    The result is bits [planes + 1, classes, channels]. Pixels of one class have the same taps inside the input.
    """
    start = np.clip(2**planes - 1 - thresholds, 0, 2**planes - 1)
    return np.stack([*(start >> plane & 1 for plane in range(planes)), thresholds < 0])


def _summand_planes(presets: Array, planes: int) -> Array:
    """Splits the start values `presets` of bit-sliced counters into bits [planes + 1, classes, channels]."""
    return np.stack([presets >> plane & 1 for plane in range(planes + 1)])


def _padded_taps(outputs: int, inputs: int, taps: int, stride: int, dilation: int, before: int) -> list[Array]:
    """A mask for each output position along an axis: bool [taps], true for taps outside of the input."""
    at = np.arange(outputs)[:, None] * stride - before + np.arange(taps) * dilation
    return list((at < 0) | (at >= inputs))


def _classes(geometry: Geometry) -> tuple[list[Array], Array | None, Array | None]:
    """Groups output pixels into classes: the windows of one class have the same taps in the zero padding.

    Returns:
        For each class, a mask bool [taps] that is true for taps in the zero padding. Then one number for each row
        of outputs, and one for each column; None if no tap is in the padding. The numbers of a pixel's row and column
        add up to the index of its class.
    """
    g = geometry
    rows = _padded_taps(g.output_height, g.input_height, g.filter_height, g.stride_height, g.dilation_height, g.pad_top)
    columns = _padded_taps(g.output_width, g.input_width, g.filter_width, g.stride_width, g.dilation_width, g.pad_left)
    if not g.zero_padding or not np.any([*map(np.any, rows), *map(np.any, columns)]):
        return [np.zeros(g.filter_height * g.filter_width, bool)], None, None
    row_sets, column_sets = (list({row.tobytes(): row for row in axis}.values()) for axis in (rows, columns))

    def numbers(axis: list[Array], sets: list[Array], factor: int) -> Array:
        index = {one.tobytes(): number * factor for number, one in enumerate(sets)}
        return np.array([index[row.tobytes()] for row in axis], np.uint16)

    classes = [(row[:, None] | column).reshape(-1) for row in row_sets for column in column_sets]
    if len(classes) > np.iinfo(np.uint16).max:
        raise ValueError(f"{len(classes)} ways to pad a window with zeros: at most 65535 are expected")
    return classes, numbers(rows, row_sets, len(column_sets)), numbers(columns, column_sets, 1)


def _padded(geometry: Geometry, classes: list[Array], bits: Array) -> tuple[Array, Array]:
    """Returns two arrays. The first, [classes], has the number of padded inputs in the windows of each class of pixels.
    The second, [classes, channels_out], has the number of one bits among the weights of these inputs.
    """
    padded = np.array([taps.sum() for taps in classes], np.int64) * geometry.group_inputs
    ones = np.array(classes, np.int64) @ bits.sum(axis=2, dtype=np.int64).T
    return padded, ones
