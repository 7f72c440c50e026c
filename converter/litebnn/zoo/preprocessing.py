"""Preprocesses images for the networks: a center crop, a bicubic resize, and ImageNet's mean and deviation.

Each function takes the module that computes: numpy, or keras.ops for tensors of any backend.
"""

from __future__ import annotations

from typing import Any

import numpy as np

IMAGE_SIZE = 224
# The share of an image's shorter side that the crop keeps.
CROP = 224 / (224 + 32)
# The mean and deviation of ImageNet's pixels in red, green and blue, in units of pixels from 0 to 255.
MEAN = (123.675, 116.28, 103.53)
STD = (58.395, 57.12, 57.375)

_SHARPNESS = -0.75  # the free coefficient of cubic convolution


def preprocessed(pixels: Any, height: int = IMAGE_SIZE, width: int = IMAGE_SIZE, ops: Any = np) -> Any:
    """Preprocesses an image: the result is float32 [height, width, 3].

    `pixels` is [any height, any width, 3], of values from 0 to 255. `height` and `width` are those of the network's
    input. `ops` is the module that computes.
    """
    resized = resized_bicubic(center_crop(pixels, ops=ops), height, width, ops)
    return (resized - np.array(MEAN, np.float32)) / np.array(STD, np.float32)


def center_crop(pixels: Any, share: float = CROP, ops: Any = np) -> Any:
    """Cuts the square in the middle of an image. The square's side is `share` of the image's shorter side, at least
    one pixel.
    """
    height, width = ops.shape(pixels)[:2]
    side = _converted(ops, _converted(ops, ops.minimum(height, width), "float32") * np.float32(share), "int32")
    side = ops.maximum(side, 1)
    top, left = (height - side + 1) // 2, (width - side + 1) // 2
    return pixels[top : top + side, left : left + side]


def resized_bicubic(pixels: Any, height: int, width: int, ops: Any = np) -> Any:
    """Resizes pixels as TensorFlow 1's resize_bicubic does, which keeps corner pixels aligned.

    Positions beyond the border of the image repeat the border pixel.
    """
    return _resized(_resized(pixels, width, 1, ops), height, 0, ops)


def _resized(pixels: Any, target: int, axis: int, ops: Any) -> Any:
    source = ops.shape(pixels)[axis]
    pixels = _converted(ops, pixels, "float32")
    positions = _converted(ops, ops.arange(target), "float32") * (
        _converted(ops, source, "float32") / np.float32(target)
    )
    first = ops.floor(positions)
    total = 0.0
    for offset in range(-1, 3):
        distance = ops.absolute(positions - (first + np.float32(offset)))
        indices = ops.clip(_converted(ops, first, "int32") + offset, 0, source - 1)
        weights = ops.reshape(_cubic(distance, ops), (target, 1, 1) if axis == 0 else (1, target, 1))
        total = total + weights * ops.take(pixels, indices, axis=axis)
    return total


def _cubic(distance: Any, ops: Any) -> Any:
    """The weight of a pixel in a bicubic resize, by its distance from the sampled position: 0 to 2 pixels."""
    a = np.float32(_SHARPNESS)
    near = ((a + 2) * distance - (a + 3)) * distance * distance + 1
    far = ((a * distance - 5 * a) * distance + 8 * a) * distance - 4 * a
    return ops.where(distance <= 1, near, far)


def _converted(ops: Any, values: Any, dtype: str) -> Any:
    return np.asarray(values).astype(dtype) if ops is np else ops.cast(values, dtype)
