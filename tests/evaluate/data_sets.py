"""Small data sets for `litebnn evaluate`, and a model with ten classes for 28×28 grey images."""

import io
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from PIL import Image

from toolchains.targets import ROOT

MODEL = ROOT / "examples" / "label_image" / "digits.tflite"


def noise(count: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Images of coarse noise, uint8 [count, 28, 28, 1], and labels [count]. The model classifies the images as many
    different digits.
    """
    rng = np.random.default_rng(seed)
    coarse = rng.integers(0, 256, (count, 7, 7, 1), np.uint8)
    return coarse.repeat(4, axis=1).repeat(4, axis=2), rng.integers(0, 10, count)


def noise_batches() -> Iterator[np.ndarray]:
    """Yields batches of noise without labels."""
    for seed in range(2):
        yield noise(5, seed)[0]


def png(pixels: np.ndarray) -> bytes:
    """The content of a PNG file that shows pixels [height, width, 1 or 3]."""
    content = io.BytesIO()
    Image.fromarray(pixels[..., 0] if pixels.shape[-1] == 1 else pixels).save(content, "png")
    return content.getvalue()


def npz(path: Path, count: int = 100) -> Path:
    """Writes a .npz file of noise images and labels."""
    images, labels = noise(count)
    np.savez(path, images=images, labels=labels)
    return path


def class_folders(path: Path, count: int = 20) -> Path:
    """Writes a folder of class folders with noise images, in the order of the labels."""
    images, labels = noise(count)
    for number, (image, label) in enumerate(zip(images, labels, strict=True)):
        (path / str(label)).mkdir(parents=True, exist_ok=True)
        (path / str(label) / f"{number:03}.png").write_bytes(png(image))
    return path


def expected_counts(images: np.ndarray, labels: np.ndarray) -> dict[str, object]:
    """The counts that an evaluation must give, computed in the simplest way."""
    import litebnn

    scores = litebnn.Interpreter(MODEL).predict((images / 127.5 - 1).astype(np.float32))
    best = np.argsort(-scores, axis=1, kind="stable")
    confusion = np.zeros((10, 10), int)
    np.add.at(confusion, (labels, best[:, 0]), 1)
    return {
        "samples": len(images),
        "top_1": float((best[:, 0] == labels).mean()),
        "top_5": float((best[:, :5] == labels[:, None]).any(axis=1).mean()),
        "confusion": [[i, j, int(confusion[i, j])] for i, j in zip(*confusion.nonzero(), strict=True)],
    }


def counted(evaluation) -> dict[str, object]:
    """The counts of an evaluation's first model, with the same keys as the result of `expected_counts`."""
    found = evaluation.to_dict()
    return {"samples": found["samples"], **{name: found["models"][0][name] for name in ("top_1", "top_5", "confusion")}}
