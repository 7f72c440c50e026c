"""Decodes image files, and converts pixels to another size or number of channels."""

from __future__ import annotations

import io
from typing import Any

import numpy as np

from litebnn.evaluate.batches import Array, Unreadable
from litebnn.evaluate.extras import import_extra

# The exceptions that Pillow raises for damaged images. Its "decompression bomb" error means that an image has far too
# many pixels.
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
                # Pillow would turn 16-bit values above 255 into white. Therefore only the upper 8 bits of each value
                # are used.
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
        ValueError: neither conversion gives this number of channels.
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
