"""Handwritten digits, as float32 images [n, 28, 28, 1] in [-1, 1] and int labels [n]."""

import gzip
import zlib
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

SIZE = 28
UNSIGNED_BYTES = 0x800  # the IDX format's code for the type, before the number of dimensions


class Digits(NamedTuple):
    """A training set and a test set of digits; images float32 [n, 28, 28, 1], labels int64 [n]."""

    train_images: npt.NDArray[Any]
    train_labels: npt.NDArray[Any]
    test_images: npt.NDArray[Any]
    test_labels: npt.NDArray[Any]


def _split(images: npt.NDArray[Any], labels: npt.NDArray[Any], train: int) -> Digits:
    return Digits(images[:train], labels[:train], images[train:], labels[train:])


def bundled_digits() -> Digits:
    """scikit-learn's 1,797 digits of 8×8 pixels, resized to 28×28; a fixed random choice of 1,400 is for training."""
    from PIL import Image
    from sklearn.datasets import load_digits

    digits = load_digits()
    resized = [
        np.asarray(Image.fromarray(image.astype(np.float32)).resize((SIZE, SIZE), Image.Resampling.BICUBIC))
        for image in digits.images
    ]
    images = np.clip(np.stack(resized) / 8 - 1, -1, 1).astype(np.float32)[..., None]
    order = np.random.default_rng(1).permutation(len(images))
    return _split(images[order], digits.target[order].astype(np.int64), 1400)


def mnist(folder: Path) -> Digits:
    """Reads MNIST's 10,000 test images from the IDX files in `folder`; the first 9,000 are for training.

    Raises:
        ValueError: a file is missing, or is no IDX file of the expected shape.
    """
    images = _idx(folder, "t10k-images-idx3-ubyte", (10000, SIZE, SIZE), 255)
    labels = _idx(folder, "t10k-labels-idx1-ubyte", (10000,), 9)
    scaled = (images.astype(np.float32) / 127.5 - 1)[..., None]
    return _split(scaled, labels.astype(np.int64), 9000)


def _idx(folder: Path, name: str, shape: tuple[int, ...], largest: int) -> npt.NDArray[np.uint8]:
    for path, opened in ((folder / f"{name}.gz", gzip.open), (folder / name, open)):
        if path.is_file():
            try:
                with opened(path, "rb") as file:
                    content = file.read()
            except (OSError, EOFError, zlib.error) as error:
                raise ValueError(f"{path}: {error}") from error
            header = np.array([UNSIGNED_BYTES + len(shape), *shape], ">i4").tobytes()
            values = np.frombuffer(content[len(header) :], np.uint8)
            if not content.startswith(header) or values.size != np.prod(shape) or values.max() > largest:
                raise ValueError(f"{path} is no IDX file of shape {shape} with values up to {largest}")
            return values.reshape(shape)
    raise ValueError(f"{folder} has neither {name}.gz nor {name}")
