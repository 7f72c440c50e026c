"""Decoding of image files, and conversion of pixels to another size or number of channels."""

from __future__ import annotations

import io
from functools import lru_cache
from typing import Any

import numpy as np

from litebnn.evaluate.batches import Array, Unreadable
from litebnn.evaluate.extras import import_extra

# Exceptions that Pillow raises for damaged images; its "decompression bomb" error means far too many pixels.
_FAILURES = (OSError, ValueError, SyntaxError, EOFError, IndexError)
_LUMA = np.array([0.299, 0.587, 0.114])


def decode(content: bytes, name: str) -> Array | Unreadable:
    """The pixels of an image file, uint8 [height, width, channels]: 1 channel for grey images, else 3.

    Raises:
        ImportError: Pillow is not installed.
    """
    image_module = import_extra("PIL.Image", "image files")
    try:
        with image_module.open(io.BytesIO(content)) as image:
            if image.mode.startswith("I;16"):
                # Pillow would clip 16-bit values above 255 to white.
                pixels = (np.asarray(image) >> 8).astype(np.uint8)
            else:
                pixels = np.asarray(image.convert("L" if image.mode in ("1", "L") else "RGB"))
    except (*_FAILURES, image_module.DecompressionBombError) as error:
        # Pillow's message contains the memory address of the buffer, which means nothing to a user.
        reason = "it is no image that Pillow knows" if "BytesIO" in str(error) else str(error)
        return Unreadable(name, reason or type(error).__name__)
    return pixels[..., None] if pixels.ndim == 2 else pixels


def with_channels(pixels: Array, channels: int) -> Array:
    """Repeats grey pixels in all channels, or reduces coloured pixels to their luma.

    Raises:
        ValueError: neither conversion gives that number of channels.
    """
    found = pixels.shape[-1]
    if found == channels:
        return pixels
    if found == 1:
        return np.repeat(pixels, channels, axis=-1)
    if (found, channels) == (3, 1):
        grey: Array = np.rint(pixels @ _LUMA)[..., None].astype(pixels.dtype)
        return grey
    raise ValueError(f"images have {found} channels, the model takes {channels}")


def resize(pixels: Array, height: int, width: int) -> Array:
    """Resizes uint8 pixels bilinearly, with antialiasing when shrinking.

    Raises:
        ImportError: Pillow is not installed.
    """
    if pixels.shape[:2] == (height, width):
        return pixels
    image: Any = import_extra("PIL.Image", "images of another size than the model's")
    planes = [
        np.asarray(image.fromarray(np.ascontiguousarray(plane)).resize((width, height), image.Resampling.BILINEAR))
        for plane in np.moveaxis(pixels, -1, 0)
    ]
    return np.stack(planes, axis=-1)


@lru_cache(maxsize=64)
def _cubic_weights(source: int, target: int) -> Array:
    """The weights [target, source] of TensorFlow 1's bicubic resize, in which corner pixels stay aligned."""
    a = -0.75
    positions = np.arange(target) * (source / target)
    first = np.floor(positions).astype(int)
    weights = np.zeros((target, source), np.float64)
    for offset in range(-1, 3):
        distance = np.abs(positions - (first + offset))
        near = ((a + 2) * distance - (a + 3)) * distance * distance + 1
        far = ((a * distance - 5 * a) * distance + 8 * a) * distance - 4 * a
        # Positions beyond the border repeat the border pixel.
        np.add.at(
            weights,
            (np.arange(target), np.clip(first + offset, 0, source - 1)),
            np.where(distance <= 1, near, far),
        )
    return weights.astype(np.float32)


def resize_bicubic(pixels: Array, height: int, width: int) -> Array:
    """Resizes pixels as TensorFlow 1's resize_bicubic does, to float32 [height, width, channels]."""
    rows, columns = _cubic_weights(pixels.shape[0], height), _cubic_weights(pixels.shape[1], width)
    across = np.einsum("wx,hxc->hwc", columns, pixels.astype(np.float32), optimize=True)
    resized: Array = np.einsum("hy,ywc->hwc", rows, across, optimize=True)
    return resized
