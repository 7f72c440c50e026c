"""Reads PAD and PADV2, and computes SAME padding."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from litebnn.analysis.match import uniform
from litebnn.contract import BITS_PER_WORD, Padding
from litebnn.graph import Array, Graph, Op, Tensor, facts

PADS = ("PAD", "PADV2")
# All ops that pad. A SPACE_TO_BATCH_ND also moves pixels.
PADDING = (*PADS, "SPACE_TO_BATCH_ND")


@dataclass(frozen=True)
class ConstantPadding:
    """A ConstantPadding has padding amounts int [rank, 2], before and after each axis, and the padding value."""

    amounts: Array
    value: float

    @property
    def is_spatial(self) -> bool:
        """True if this padding pads only the height and width of an NHWC tensor."""
        return len(self.amounts) == 4 and not np.any(self.amounts[[0, 3]])


def pad_amounts(op: Op) -> Array | None:
    """Returns the amounts int [rank, 2] of a PAD or PADV2. Returns None if the amounts are not constant, or do not
    match the axes of input and output."""
    amounts = op.input(1).array
    ranks = {len(op.input(0).dims), len(op.output.dims)}
    return amounts if amounts is not None and ranks == {len(amounts)} and amounts.shape[1:] == (2,) else None


def pads_nothing(op: Op) -> bool:
    """True if all amounts of a PAD or PADV2 are zero. Exporters write such ops for layers without padding."""
    amounts = pad_amounts(op)
    return amounts is not None and not np.any(amounts)


def constant_padding(op: Op) -> ConstantPadding | None:
    """Returns the padding of a PAD, a PADV2 or a SPACE_TO_BATCH_ND, if the padding is constant."""
    value = uniform(op.input(2)) if op.name == "PADV2" else 0.0
    if op.name == "SPACE_TO_BATCH_ND":
        spatial, rank = op.input(2).array, len(op.output.dims)
        known = spatial is not None and spatial.shape[1:] == (2,) and len(spatial) < rank
        amounts = np.pad(spatial, ((1, rank - 1 - len(spatial)), (0, 0))) if known and spatial is not None else None
    else:
        amounts = pad_amounts(op)
    if amounts is None or value is None or np.any(amounts < 0) or not _is_padded(op, amounts):
        return None
    return ConstantPadding(amounts, value)


def _is_padded(op: Op, amounts: Array) -> bool:
    """True if the declared sizes of the output are those of the input plus the amounts of padding, as far as all
    sizes are known.
    """
    before, after = op.input(0).dims, op.output.dims
    if op.name == "SPACE_TO_BATCH_ND":  # it also divides the sizes into blocks
        return len(before) == len(after) and before[-1] == after[-1]
    sizes = zip(before, amounts.sum(axis=1), after, strict=False)
    return len(before) == len(after) and all(b < 0 or a < 0 or b + more == a for b, more, a in sizes)


def without_zeros(graph: Graph, tensor: Tensor) -> tuple[Tensor, Array]:
    """Returns the NHWC tensor before `tensor` is padded with zeros, and the amounts int [2, 2] for height and width."""
    zeros = np.zeros((2, 2), np.int32)
    while (op := graph.producer(tensor, *PADS)) is not None:
        padding = constant_padding(op)
        if padding is None or not padding.is_spatial or padding.value != 0.0:
            break
        tensor, zeros = op.input(0), zeros + padding.amounts[1:3].astype(np.int32)
    return tensor, zeros


def unpadded_input(graph: Graph, layer: Op) -> tuple[Tensor, Array]:
    """Returns the tensor that a convolution reads, before it is padded with zeros, and their amounts, as
    `without_zeros` does. The input of a dense layer or matrix product is returned as it is.
    """
    data = layer.input(facts(layer).data)
    has_rows = layer.name in ("FULLY_CONNECTED", "BATCH_MATMUL")
    return (data, np.zeros((2, 2), np.int32)) if has_rows else without_zeros(graph, data)


def pooled_input(graph: Graph, pool: Op) -> Tensor:
    """Returns the input of a MAX_POOL_2D, before exporters pad it with a number that is no maximum of any window."""
    pad = graph.producer(pool.input(0), "PADV2")
    padding = None if pad is None else constant_padding(pad)
    if pad is None or padding is None or not padding.is_spatial or padding.value > np.finfo(np.float32).min:
        return pool.input(0)
    taps = np.array([[pool.options.filter_height], [pool.options.filter_width]])
    return pad.input(0) if np.all(padding.amounts[1:3] < taps) else pool.input(0)


def word_of_padding(channels: int, value: int) -> int | None:
    """Returns the word that pads packed signs with +1 or -1.

    The result is None if no single word encodes a padded pixel. No word does so for -1 and more than 32 channels that
    are not a multiple of 32.
    """
    word = 0 if value == 1 else -1 if channels % BITS_PER_WORD == 0 else (1 << channels) - 1
    return word if word.bit_length() < BITS_PER_WORD else None


def same_amounts(size: int, taps: int, stride: int, dilation: int) -> tuple[int, int] | None:
    """Returns the amounts before and after of TensorFlow's SAME padding along one axis.

    Returns:
        None if they depend on an unknown size (-1).
    """
    reach = (taps - 1) * dilation
    if size < 0:
        return (reach // 2, reach - reach // 2) if stride == 1 else ((0, 0) if reach == 0 else None)
    total = max((-(-size // stride) - 1) * stride + reach + 1 - size, 0)
    return total // 2, total - total // 2


def same_padding(
    sizes: Sequence[int], taps: Sequence[int], strides: Sequence[int], dilations: Sequence[int] = (1, 1)
) -> tuple[tuple[int, int], tuple[int, int]] | None:
    """Returns the amounts of SAME padding of height and width; None if they depend on an unknown size."""
    height, width = map(same_amounts, sizes, taps, strides, dilations)
    return None if height is None or width is None else (height, width)


def layer_padding(layer: Op) -> tuple[tuple[int, int], tuple[int, int]] | None:
    """Returns the amounts of a layer's own padding of height and width; None if the amounts depend on an unknown
    size."""
    if layer.name != "CONV_2D" or layer.options.padding == Padding.VALID:
        return (0, 0), (0, 0)
    o, sizes, taps = layer.options, layer.input(0).dims, layer.input(1).shape
    if len(sizes) != 4 or len(taps) != 4:
        return None
    strides, dilations = (o.stride_h, o.stride_w), (o.dilation_h_factor, o.dilation_w_factor)
    return same_padding(sizes[1:3], taps[1:3], strides, dilations)


def why_unknown_padding(layer: Op, zeros: Array) -> str | None:
    """Returns the reason why a layer's total padding is unknown, or None if the total is known.

    The total includes padding with zeros by a preceding op, which adds int [2, 2] rows and columns.
    """
    if layer_padding(layer) is None and np.any(zeros):
        return "its input is padded, and how SAME pads it further depends on a size that is not known"
    return None


def is_same_padding(
    amounts: Array,
    sizes: tuple[int, ...],
    taps: tuple[int, ...],
    strides: tuple[int, int],
    dilations: tuple[int, int],
) -> bool:
    """True if padding height and width by `amounts` (int [2, 2]) and a VALID convolution equal a SAME convolution.

    For an unknown size (-1), the result is True only if SAME padding does not depend on the size.
    """
    for (before, after), size, k, stride, dilation in zip(amounts, sizes, taps, strides, dilations, strict=True):
        same, reach = same_amounts(size, k, stride, dilation), (k - 1) * dilation
        if same is None or before != same[0]:
            return False
        outputs = (size + before + after - reach - 1) // stride + 1
        if after != same[1] if size < 0 else outputs != -(-size // stride):
            return False
    return True
