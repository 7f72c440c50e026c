"""Tests the packing of signs to bits, the options of ops, and thresholds against a naive implementation."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from litebnn.contract import (
    ACTIVATION_RANGES,
    LCE_BCONV_2D,
    LCE_BMAXPOOL_2D,
    LCE_QUANTIZE,
    Activation,
    BConv2DOptions,
    BMaxPool2DOptions,
    decode_options,
    encode_options,
    flip_channels_out,
    output_thresholds,
    pack_bits,
    unpack_bits,
)


def test_channel_0_is_the_least_significant_bit() -> None:
    bits = np.zeros((2, 40), np.bool_)
    bits[0, 0] = bits[0, 31] = bits[1, 33] = True
    np.testing.assert_array_equal(pack_bits(bits), [[1 - 2**31, 0], [0, 2]])


@given(st.integers(1, 100), st.integers(0, 1000))
def test_bits_come_back(channels: int, seed: int) -> None:
    bits = np.random.default_rng(seed).random((3, 2, channels)) < 0.5
    packed = pack_bits(bits)
    assert packed.shape == (3, 2, -(-channels // 32))
    assert packed.dtype == np.int32
    np.testing.assert_array_equal(unpack_bits(packed, channels), bits)


def test_flipping_leaves_padding_bits_alone() -> None:
    words = pack_bits(np.zeros((2, 1, 1, 37), np.bool_))
    flipped = flip_channels_out(words, 37, np.array([False, True]))
    np.testing.assert_array_equal(flipped[:, 0, 0], [[0, 0], [-1, 31]])


@pytest.mark.parametrize(
    ("name", "options"),
    [
        (LCE_BCONV_2D, BConv2DOptions(64, 1, 2, Activation.RELU6, 1, 0, 2, 1)),
        (LCE_BCONV_2D, BConv2DOptions(64, padding=None, pad_top=0, pad_bottom=1, pad_left=2, pad_right=3)),
        (LCE_BMAXPOOL_2D, BMaxPool2DOptions(0, 2, 1, 3, 2)),
        (LCE_QUANTIZE, None),
    ],
)
def test_options_come_back(name: str, options: BConv2DOptions | BMaxPool2DOptions | None) -> None:
    assert decode_options(name, encode_options(options)) == options


@pytest.mark.parametrize("encoded", [b"", b"\x00", b"\xff" * 9, encode_options(BMaxPool2DOptions(0, 1, 1, 1, 1))])
def test_options_that_are_none(encoded: bytes) -> None:
    with pytest.raises(ValueError, match=LCE_BCONV_2D):
        decode_options(LCE_BCONV_2D, encoded)


quarters = st.integers(-80, 80).map(lambda n: n / 4)


@given(
    st.integers(1, 20),
    st.lists(st.tuples(quarters, quarters), min_size=1, max_size=8),
    st.sampled_from(list(Activation)),
)
def test_thresholds_give_the_sign_of_every_dot_product(
    dot_max: int, channels: list[tuple[float, float]], activation: Activation
) -> None:
    multiplier, bias = (np.array(column) for column in zip(*channels, strict=True))
    thresholds, flip = output_thresholds(multiplier, bias, dot_max, activation)
    for differing in range(dot_max + 1):
        dot = np.clip(dot_max - 2 * differing, *ACTIVATION_RANGES[activation])
        expected = dot * multiplier + bias < 0
        counted = np.where(flip, dot_max - differing, differing)
        np.testing.assert_array_equal(counted > thresholds, expected)


def test_a_zero_bias_lowered_by_the_least_number_is_strict() -> None:
    least = np.array([-np.finfo(np.float32).tiny], np.float32)
    for dot_max in (8, 9):
        (threshold,), _ = output_thresholds(np.ones(1, np.float32), least, dot_max, Activation.NONE)
        signs = [differing > threshold for differing in range(dot_max + 1)]
        assert signs == [dot_max - 2 * differing <= 0 for differing in range(dot_max + 1)]
