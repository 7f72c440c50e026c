"""Tests the preprocessing of images."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from litebnn.zoo.preprocessing import MEAN, STD, center_crop, preprocessed, resized_bicubic


@pytest.mark.parametrize(
    ("height", "width", "side", "top", "left"),
    [
        (256, 256, 224, 16, 16),
        (300, 500, 262, 19, 119),
        (7, 5, 4, 2, 1),
        (1, 1, 1, 0, 0),
        (1, 5, 1, 0, 2),
        (4, 1, 1, 2, 0),
    ],
)
def test_the_crop_is_the_square_in_the_middle(height: int, width: int, side: int, top: int, left: int) -> None:
    rows, columns = np.mgrid[:height, :width]
    cropped = center_crop(np.stack([rows, columns, rows], axis=-1))
    assert cropped.shape == (side, side, 3)
    assert tuple(cropped[0, 0]) == (top, left, top)


@given(st.integers(1, 40), st.integers(1, 40), st.floats(1e-30, 1))
def test_a_crop_is_a_square_of_the_images_pixels(height: int, width: int, share: float) -> None:
    pixels = np.arange(height * width).reshape(height, width, 1)
    cropped = center_crop(pixels, share)
    side = len(cropped)
    assert cropped.shape == (side, side, 1)
    assert 1 <= side <= min(height, width)
    assert side <= max(1, share * min(height, width) * (1 + 1e-6))
    top, left = divmod(int(cropped[0, 0, 0]), width)
    assert abs(2 * top + side - height) <= 1
    assert abs(2 * left + side - width) <= 1


def test_a_resize_to_the_same_size_changes_nothing() -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (9, 9, 3)).astype(np.uint8)
    np.testing.assert_array_equal(resized_bicubic(pixels, 9, 9), pixels)


def test_an_enlarged_edge_overshoots_as_cubic_convolution_does() -> None:
    pixels = np.zeros((1, 4, 1), np.float32)
    pixels[:, 2:] = 16
    # The weights of cubic convolution depend on a parameter, here -0.75. Halfway between two pixels, the weights
    # are -3/32, 19/32, 19/32 and -3/32.
    expected = [0, -1.5, 0, 8, 16, 17.5, 16, 16]
    np.testing.assert_allclose(resized_bicubic(pixels, 1, 8)[0, :, 0], expected)


def test_statistics_are_imagenets() -> None:
    grey = np.full((40, 60, 3), 128, np.uint8)
    expected = (128 - np.array(MEAN)) / np.array(STD)
    np.testing.assert_allclose(preprocessed(grey, 8, 8), np.broadcast_to(expected, (8, 8, 3)), rtol=1e-6)
