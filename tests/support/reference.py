"""The reference implementation of the custom ops in plain NumPy, written from docs/ops.md.

The reference shares no code with the product. Packed tensors are int32 with the channels' words on the last axis; signs
are arrays of +1 and -1.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

SAME, VALID = 0, 1
ACTIVATION_CLAMPS = {0: (-np.inf, np.inf), 1: (0, np.inf), 2: (-1, 1), 3: (0, 6)}

Array = npt.NDArray[Any]


def pack(signs: Array) -> Array:
    """Packs signs [..., channels]: bit 1 where a sign is -1, channel 0 in the least significant bit, padding bits 0."""
    channels = signs.shape[-1]
    words = (channels + 31) // 32
    bits = np.zeros((*signs.shape[:-1], words * 32), np.uint64)
    bits[..., :channels] = signs < 0
    weights = np.uint64(1) << np.arange(32, dtype=np.uint64)
    packed = (bits.reshape(*signs.shape[:-1], words, 32) * weights).sum(axis=-1)
    return packed.astype(np.uint32).view(np.int32)


def unpack(words: Array, channels: int) -> Array:
    """Unpacks what `pack` has packed: int32 signs [..., channels]."""
    shifts = np.arange(32, dtype=np.uint32)
    bits = (words.astype(np.int32).view(np.uint32)[..., None] >> shifts) & np.uint32(1)
    signs = 1 - 2 * bits.astype(np.int32)
    return signs.reshape(*words.shape[:-1], -1)[..., :channels]


def lce_quantize(x: Array, zero_point: int = 0) -> Array:
    """Computes LceQuantize of float32, int8 or bool."""
    if x.dtype == np.bool_:
        return pack(np.where(x, 1, -1))
    return pack(np.where(x < (zero_point if x.dtype == np.int8 else 0), -1, 1))


def lce_dequantize(words: Array, channels: int, dtype: Any, scale: float = 1.0, zero_point: int = 0) -> Array:
    """Computes LceDequantize to float32, int8 or bool."""
    signs = unpack(words, channels)
    if dtype == np.bool_:
        return signs > 0
    if dtype == np.int8:
        one = round_half_away(1.0 / np.float64(np.float32(scale)))
        return np.clip(zero_point + signs * one, -128, 127).astype(np.int8)
    return signs.astype(np.float32)


def unpack_weights(signs: Array, scales: Array, zeros: Array | None, shape: tuple[int, ...]) -> Array:
    """Computes LitebnnUnpackWeights; `signs` and `zeros` are packed rows."""
    count = int(np.prod(shape[1:]))
    values = unpack(signs, count).astype(np.float32)
    if zeros is not None:
        values[unpack(zeros, count) < 0] = 0
    values = values.reshape(shape)
    return values * (scales if shape[0] == 1 else scales.reshape(-1, *[1] * (len(shape) - 1)))


def _pool2d(x: Array, filter_size: tuple[int, int], stride: tuple[int, int], padding: int, pool: Any) -> Array:
    """Applies `pool(taps, axis=...)` to each window of an NHWC array."""
    positions, before = zip(
        *(axis_window(x.shape[1 + i], filter_size[i], stride[i], 1, padding) for i in (0, 1)), strict=True
    )
    output = np.empty((x.shape[0], *positions, x.shape[3]), x.dtype)
    for row in range(positions[0]):
        for column in range(positions[1]):
            top, left = row * stride[0] - before[0], column * stride[1] - before[1]
            rows = slice(max(top, 0), top + filter_size[0])
            columns = slice(max(left, 0), left + filter_size[1])
            output[:, row, column] = pool(x[:, rows, columns], axis=(1, 2))
    return output


def lce_bmaxpool2d(words: Array, filter_size: tuple[int, int], stride: tuple[int, int], padding: int) -> Array:
    """Computes LceBMaxPool2d of packed NHWC images."""
    return _pool2d(words, filter_size, stride, padding, np.bitwise_and.reduce)


def max_pool2d(x: Array, filter_size: tuple[int, int], stride: tuple[int, int], padding: int) -> Array:
    """Computes MAX_POOL_2D of NHWC images."""
    return _pool2d(x, filter_size, stride, padding, np.max)


def lce_bconv2d(
    words: Array,
    filter_words: Array,
    multiplier: Array | None,
    bias: Array | None,
    threshold: Array | None,
    options: dict[str, int],
    output: str = "float32",
    scale: float = 1.0,
    zero_point: int = 0,
) -> Array:
    """Computes LceBconv2d of packed NHWC images with a packed OHWI filter. `output` is "float32", "int8" or "packed".

    Values are computed in float64. Float32 results may differ by rounding, and int8 results by at most one level if a
    value lies near the middle of two levels.
    """
    channels_in = options["channels_in"]
    channels_out, filter_height, filter_width, tap_words = filter_words.shape
    group_channels = min(channels_in, tap_words * 32)
    groups = channels_in // group_channels
    strides = options["stride_height"], options["stride_width"]
    dilations = options["dilation_height_factor"], options["dilation_width_factor"]
    taps = filter_height, filter_width
    if "padding" in options:
        paddings: list[Any] = [options["padding"]] * 2
    else:
        paddings = [(options["pad_top"], options["pad_bottom"]), (options["pad_left"], options["pad_right"])]
    (height, top), (width, left) = (
        axis_window(words.shape[1 + i], taps[i], strides[i], dilations[i], paddings[i]) for i in (0, 1)
    )

    # Taps outside the input have the value 0 or +1, which `pad_values` selects.
    signs = unpack(words, channels_in)
    steps = zip((height, width), strides, taps, dilations, strict=True)
    covered = [(n - 1) * stride + (k - 1) * dilation + 1 for n, stride, k, dilation in steps]
    frame = np.full((signs.shape[0], *covered, channels_in), options["pad_values"], np.int32)
    rows, columns = (max(min(signs.shape[1 + i], covered[i] - before), 0) for i, before in enumerate((top, left)))
    frame[:, top : top + rows, left : left + columns] = signs[:, :rows, :columns]

    weights = unpack(filter_words, group_channels)
    dot = np.zeros((signs.shape[0], height, width, channels_out), np.int64)
    outputs_per_group = channels_out // groups
    for y in range(filter_height):
        for x in range(filter_width):
            begin = y * dilations[0], x * dilations[1]
            tap = frame[
                :,
                begin[0] : begin[0] + (height - 1) * strides[0] + 1 : strides[0],
                begin[1] : begin[1] + (width - 1) * strides[1] + 1 : strides[1],
            ]
            for group in range(groups):
                inputs = tap[..., group * group_channels : (group + 1) * group_channels]
                outputs = slice(group * outputs_per_group, (group + 1) * outputs_per_group)
                dot[..., outputs] += np.einsum("nhwi,oi->nhwo", inputs, weights[outputs, y, x], dtype=np.int64)

    if output == "packed":
        assert threshold is not None
        # The variable acc counts the products of -1. A tap with products of 0 adds half its channels, because
        # acc = (K - dot) / 2.
        acc = (filter_height * filter_width * group_channels - dot) // 2
        return pack(np.where(acc > threshold.astype(np.int64), -1, 1))

    y = np.clip(dot, *ACTIVATION_CLAMPS[options["fused_activation_function"]]).astype(np.float64)
    if multiplier is not None:
        y = y * multiplier.astype(np.float64)
    if bias is not None:
        y = y + bias.astype(np.float64)
    if output == "float32":
        return y.astype(np.float32)
    return np.clip(round_half_away(y / np.float64(np.float32(scale))) + zero_point, -128, 127).astype(np.int8)


def axis_window(
    size: int, filter_size: int, stride: int, dilation: int, padding: int | tuple[int, int]
) -> tuple[int, int]:
    """The output size along one axis, and the padding before the input. They are computed as in TensorFlow, or from
    an explicit padding (before, after).
    """
    reach = (filter_size - 1) * dilation + 1
    if padding == VALID:
        padding = (0, 0)
    if isinstance(padding, tuple):
        return (size + sum(padding) - reach) // stride + 1, padding[0]
    positions = -(-size // stride)
    return positions, max((positions - 1) * stride + reach - size, 0) // 2


def round_half_away(x: Any) -> Any:
    """Rounds to the nearest integer, halves away from zero."""
    whole = np.trunc(x)
    return whole + np.where(np.abs(x - whole) >= 0.5, np.sign(x), 0)
