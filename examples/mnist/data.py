"""Handwritten digits as float32 images [n, 28, 28, 1] in [-1, 1] and int labels [n]."""

import gzip
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

SIZE = 28


class Digits(NamedTuple):
    """A training set and a test set; images float32 [n, 28, 28, 1], labels int64 [n]."""

    train_images: npt.NDArray[Any]
    train_labels: npt.NDArray[Any]
    test_images: npt.NDArray[Any]
    test_labels: npt.NDArray[Any]


def _split(images: npt.NDArray[Any], labels: npt.NDArray[Any], train: int) -> Digits:
    return Digits(images[:train], labels[:train], images[train:], labels[train:])


def bundled_digits() -> Digits:
    """scikit-learn's 1,797 digits of 8×8 pixels, resized; 1,400 at random (always the same) are for training."""
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
    """MNIST's 10,000 test images from their IDX files in `folder`; the first 9,000 are for training.

    Raises:
        ValueError: a file is missing or is no IDX file of the expected shape.
    """
    images = _idx(folder, "t10k-images-idx3-ubyte", (10000, SIZE, SIZE))
    labels = _idx(folder, "t10k-labels-idx1-ubyte", (10000,))
    scaled = (images.astype(np.float32) / 127.5 - 1)[..., None]
    return _split(scaled, labels.astype(np.int64), 9000)


def _idx(folder: Path, name: str, shape: tuple[int, ...]) -> npt.NDArray[np.uint8]:
    for path, opened in ((folder / f"{name}.gz", gzip.open), (folder / name, open)):
        if path.is_file():
            try:
                with opened(path, "rb") as file:
                    content = file.read()
            except (OSError, EOFError) as error:
                raise ValueError(f"{path}: {error}") from error
            header = np.frombuffer(content[: 4 + 4 * len(shape)], ">i4")
            if len(content) != 4 * len(header) + int(np.prod(shape)) or tuple(header[1:]) != shape:
                raise ValueError(f"{path} is no IDX file of shape {shape}")
            return np.frombuffer(content[4 * len(header) :], np.uint8).reshape(shape)
    raise ValueError(f"{folder} has neither {name}.gz nor {name}")
