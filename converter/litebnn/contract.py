"""The contract of the custom ops: names, options, bits and threshold arithmetic, as docs/ops.md defines them.

No other Python module repeats these definitions. `ops/tflite` has the same definitions in C++, and a test compares
both.
"""

from __future__ import annotations

import functools
import re
from dataclasses import asdict, dataclass
from enum import IntEnum
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from litebnn.errors import ConversionError

BITS_PER_WORD = 32

LCE_QUANTIZE = "LceQuantize"
LCE_DEQUANTIZE = "LceDequantize"
LCE_BCONV_2D = "LceBconv2d"
LCE_BMAXPOOL_2D = "LceBMaxPool2d"
LITEBNN_UNPACK_WEIGHTS = "LitebnnUnpackWeights"
CUSTOM_OPS = (LCE_QUANTIZE, LCE_DEQUANTIZE, LCE_BCONV_2D, LCE_BMAXPOOL_2D, LITEBNN_UNPACK_WEIGHTS)
# The ops that converters before Larq Compute Engine 0.4 wrote, such as LqceBconv2d64 (0.1) and LceBsign (0.2, 0.3).
_OUTDATED_OPS = re.compile(r"Lqce\w+|LceBsign")

ALWAYS_MINUS_ONE = np.iinfo(np.int32).min
ALWAYS_PLUS_ONE = np.iinfo(np.int32).max


class Padding(IntEnum):
    SAME = 0
    VALID = 1


class PadValues(IntEnum):
    """The value of padded positions, for SAME and explicit padding."""

    ZERO = 0
    ONE = 1


class Activation(IntEnum):
    """The activations of the option `fused_activation_function`, with the numbers of the .tflite schema."""

    NONE = 0
    RELU = 1
    RELU_N1_TO_1 = 2
    RELU6 = 3


ACTIVATION_RANGES: dict[Activation, tuple[float, float]] = {
    Activation.NONE: (-np.inf, np.inf),
    Activation.RELU: (0.0, np.inf),
    Activation.RELU_N1_TO_1: (-1.0, 1.0),
    Activation.RELU6: (0.0, 6.0),
}


@dataclass(frozen=True)
class BConv2DOptions:
    """The options of `LceBconv2d`. The fields are the keys of a FlexBuffer map, which omits fields that are None.

    If the padding is neither SAME nor VALID, it is explicit: `padding` is None and the four amounts are set.
    """

    channels_in: int
    dilation_height_factor: int = 1
    dilation_width_factor: int = 1
    fused_activation_function: int = Activation.NONE
    pad_values: int = PadValues.ZERO
    padding: int | None = Padding.VALID
    stride_height: int = 1
    stride_width: int = 1
    pad_top: int | None = None
    pad_bottom: int | None = None
    pad_left: int | None = None
    pad_right: int | None = None

    @classmethod
    def decode(cls, encoded: bytes) -> BConv2DOptions:
        """The options of a `LceBconv2d`, as `decode_options` reads them."""
        return cast(BConv2DOptions, decode_options(LCE_BCONV_2D, encoded))

    @property
    def strides(self) -> tuple[int, int]:
        return self.stride_height, self.stride_width

    @property
    def dilations(self) -> tuple[int, int]:
        return self.dilation_height_factor, self.dilation_width_factor

    @property
    def explicit_padding(self) -> tuple[tuple[int, int], tuple[int, int]] | None:
        """The amounts ((top, bottom), (left, right)) if the padding is explicit, else None."""
        if self.padding is not None:
            return None
        return (self.pad_top or 0, self.pad_bottom or 0), (self.pad_left or 0, self.pad_right or 0)

    @property
    def pads_zeros(self) -> bool:
        """True if taps outside the input add zero to the sum."""
        return self.padding != Padding.VALID and self.pad_values == PadValues.ZERO


EXPLICIT_PADDING = ("pad_top", "pad_bottom", "pad_left", "pad_right")
# The largest number of values in a tensor, and the largest value of any option: INT32_MAX.
MOST_VALUES = (1 << 31) - 1
MOST_DIMENSIONS = 256
# The largest number of options of an op. The op library searches keys linearly, and many nodes may share a map, so
# large maps would take long.
MOST_OPTIONS = 32
# The lowest and highest values of options that the op library accepts. Options that are not listed must be at least 1.
_OPTION_RANGES: dict[str, tuple[int, int]] = {
    "fused_activation_function": (min(Activation), max(Activation)),
    "padding": (min(Padding), max(Padding)),
    "pad_values": (min(PadValues), max(PadValues)),
    **dict.fromkeys(EXPLICIT_PADDING, (0, MOST_VALUES)),
}


@dataclass(frozen=True)
class BMaxPool2DOptions:
    """The options of `LceBMaxPool2d`. The fields are the keys of a FlexBuffer map."""

    padding: int
    stride_width: int
    stride_height: int
    filter_width: int
    filter_height: int

    @classmethod
    def decode(cls, encoded: bytes) -> BMaxPool2DOptions:
        """The options of a `LceBMaxPool2d`, as `decode_options` reads them."""
        return cast(BMaxPool2DOptions, decode_options(LCE_BMAXPOOL_2D, encoded))

    @property
    def strides(self) -> tuple[int, int]:
        return self.stride_height, self.stride_width

    @property
    def taps(self) -> tuple[int, int]:
        return self.filter_height, self.filter_width


def encode_options(options: BConv2DOptions | BMaxPool2DOptions | None) -> bytes:
    """Encodes an op's options as a FlexBuffer; `LceQuantize` and `LceDequantize` have none.

    >>> encode_options(None)
    b''
    """
    if options is None:
        return b""
    from flatbuffers import flexbuffers

    values = {key: int(value) for key, value in asdict(options).items() if value is not None}
    encoded: Any = flexbuffers.Dumps(values)
    return bytes(encoded)


@functools.lru_cache(maxsize=1024)
def decode_options(name: str, encoded: bytes) -> BConv2DOptions | BMaxPool2DOptions | None:
    """Decodes the options that `encode_options` has encoded, for the op called `name`. Unknown keys are ignored.

    Raises:
        ConversionError: the op library refuses the options; the message names the op and the option.
    """
    kind: Any = {LCE_BCONV_2D: BConv2DOptions, LCE_BMAXPOOL_2D: BMaxPool2DOptions}.get(name)
    if kind is None:
        return None
    try:
        values = _option_values(encoded)
    except Exception as error:
        raise ConversionError(f"{name}: options are not a FlexBuffer map of integers: {error}") from None
    is_explicit = kind is BConv2DOptions and "padding" not in values and "pad_top" in values
    left_out = ("padding",) if is_explicit else EXPLICIT_PADDING
    found: dict[str, int | None] = {"padding": None}
    for key in kind.__dataclass_fields__:
        if key in left_out:
            continue
        low, high = _OPTION_RANGES.get(key, (1, MOST_VALUES))
        value = found[key] = values.get(key)
        if value is None or not low <= value <= high:
            text = "a value of another type" if value is None and key in values else str(value).lower()
            raise ConversionError(f"{name}: option {key}: expected an integer from {low:d} to {high:d}, found {text}")
    return kind(**found)  # type: ignore[no-any-return]


def is_outdated(name: str, encoded: bytes) -> bool:
    """True if a converter before Larq Compute Engine 0.4 wrote the op: `LceBconv2d` had a vector of strides then, and
    other weights.

    >>> is_outdated("LqceBconv2d64", b"")
    True
    """
    if name != LCE_BCONV_2D:
        return _OUTDATED_OPS.fullmatch(name) is not None
    try:
        return "stride_height" not in _option_values(encoded)
    except Exception:
        return False


def _option_values(encoded: bytes) -> dict[str, int | None]:
    """Reads a FlexBuffer map. Values that are not integers become None, and the first of equal keys wins."""
    from flatbuffers import flexbuffers

    options = flexbuffers.GetRoot(encoded).AsMap
    keys = options.Keys
    if len(keys) > MOST_OPTIONS or len(keys) != len(options):
        raise ValueError(f"{len(keys)} keys and {len(options)} values, expected as many, and {MOST_OPTIONS} at most")
    values: dict[str, int | None] = {}
    for key, value in zip(keys, options.Values, strict=True):
        values.setdefault(key.AsKeyBytes.decode("latin-1"), value.AsInt if value.IsInt else None)
    return values


def pack_bits(minus_one: npt.NDArray[np.bool_]) -> npt.NDArray[np.int32]:
    """Packs the last axis, 32 channels to an int32, channel 0 in the least significant bit; padding bits are 0.

    Args:
        minus_one: bool [..., channels], true where the value is -1.
    Returns:
        int32 [..., ceil(channels / 32)].

    >>> pack_bits(np.array([True, False, True]))
    array([5], dtype=int32)
    """
    channels = minus_one.shape[-1]
    words = -(-channels // BITS_PER_WORD)
    packed = np.packbits(minus_one, axis=-1, bitorder="little")
    missing = words * 4 - packed.shape[-1]
    if missing:
        packed = np.concatenate([packed, np.zeros((*packed.shape[:-1], missing), np.uint8)], axis=-1)
    return np.ascontiguousarray(packed).view("<i4").astype(np.int32, copy=False)


def unpack_bits(words: npt.NDArray[np.int32], channels: int) -> npt.NDArray[np.bool_]:
    """Unpacks the bits that `pack_bits` has packed: bool [..., channels], true where the value is -1.

    >>> unpack_bits(np.array([5], np.int32), 3)
    array([ True, False,  True])
    """
    as_bytes = np.ascontiguousarray(words.astype("<i4", copy=False)).view(np.uint8)
    return np.unpackbits(as_bytes, axis=-1, count=channels, bitorder="little").astype(np.bool_)


def flip_channels_out(filter_words: npt.NDArray[np.int32], channels: int, flip: npt.NDArray[np.bool_]) -> Any:
    """Negates the filters of the output channels for which `flip` is true. The filters are int32 in OHWI order,
    with `channels` signs in each tap.
    """
    ones = pack_bits(np.ones(channels, np.bool_))
    return np.where(flip[:, None, None, None], filter_words ^ ones, filter_words)


def output_thresholds(
    multiplier: npt.NDArray[np.floating[Any]],
    bias: npt.NDArray[np.floating[Any]],
    dot_max: int,
    activation: Activation,
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.bool_]]:
    """The thresholds that give the sign of `clamp(dot) * multiplier + bias` from a popcount.

    Let acc be the number of differing bits; then dot = dot_max - 2 * acc. The op writes bit 1 (-1) if acc > threshold.
    The value -0.0 counts as +1.

    Args:
        multiplier: the multiplier of each output channel, float [O], of any sign.
        bias: the bias of each output channel, float [O].
        dot_max: the number of taps times channels per group.
        activation: the clamp on the dot product.
    Returns:
        int32 [O] thresholds, and bool [O], true for channels whose filter must be negated.

    >>> output_thresholds(np.array([2.0, -2.0]), np.array([1.0, 1.0]), 9, Activation.NONE)
    (array([4, 4], dtype=int32), array([False,  True]))
    """
    m = multiplier.astype(np.float64)
    b = bias.astype(np.float64)
    low, high = (np.clip(bound, -dot_max, dot_max) for bound in ACTIVATION_RANGES[activation])
    at_low, at_high = low * m + b, high * m + b
    scale = np.where(m == 0, 1.0, np.abs(m))
    # The condition dot * multiplier + bias < 0 becomes a comparison of dot with the quotient of bias and multiplier.
    # The quotient may be rounded to an integer first, because dot products are integers.
    threshold = np.floor((dot_max + np.floor(b / scale)) / 2)
    never, always = np.minimum(at_low, at_high) >= 0, np.maximum(at_low, at_high) < 0
    threshold = np.where(always, ALWAYS_MINUS_ONE, np.where(never, ALWAYS_PLUS_ONE, threshold))
    return np.clip(threshold, ALWAYS_MINUS_ONE, ALWAYS_PLUS_ONE).astype(np.int32), m < 0
