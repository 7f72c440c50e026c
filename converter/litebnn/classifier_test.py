"""Tests the classification of photographs by a file with metadata."""

from pathlib import Path

import numpy as np
import pytest

import litebnn
from litebnn.flatbuffer import ImageClassifier, with_metadata
from tests.support.programs import pixels_model

DIGITS = (Path(__file__).resolve().parents[2] / "examples" / "label_image" / "digits.tflite").read_bytes()
LABELS = tuple(f"digit {n}" for n in range(10))


@pytest.fixture
def classify(library: Path) -> litebnn.Classifier:
    metadata = ImageClassifier("digits", labels=LABELS, mean=(0.0,), std=(255.0,))
    return litebnn.Classifier(with_metadata(DIGITS, metadata))


def test_the_likeliest_classes_come_first(classify: litebnn.Classifier) -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (28, 28, 1), np.uint8)
    scores = litebnn.Interpreter(DIGITS).predict(pixels[None].astype(np.float32) / 255)[0]
    found = classify(pixels, top=10)
    assert [label for label, _ in found] == [LABELS[n] for n in np.argsort(-scores, kind="stable")]
    np.testing.assert_allclose([score for _, score in found], np.sort(scores)[::-1], rtol=1e-6)
    assert classify(pixels) == found[:5]
    assert classify.name == "digits"


@pytest.mark.usefixtures("library")
@pytest.mark.parametrize(
    ("dtype", "scale", "zero_point"),
    [("UINT8", 1 / 40, 100), ("INT8", 1 / 40, -28), ("INT8", 1 / 16, 3), ("UINT8", 0, 0), ("INT8", 0, 0)],
)
def test_a_quantized_model_gets_levels_and_gives_real_scores(dtype: str, scale: float, zero_point: int) -> None:
    """The model returns its input as scores. If its tensors have no quantization scale, the model gets the pixels
    themselves (minus 128 for int8). The classifier then divides the model's output by 255.
    """
    pixels = np.random.default_rng(1).permutation(4 * 6 * 3).astype(np.uint8).reshape(4, 6, 3) * 3
    mean, std = np.array([120.0, 115, 100]), np.array([60.0, 55, 50])
    labels = tuple(f"class {n}" for n in range(pixels.size))
    metadata = ImageClassifier("pixels", labels=labels, mean=tuple(mean), std=tuple(std))
    classify = litebnn.Classifier(with_metadata(pixels_model((1, 4, 6, 3), dtype, scale, zero_point), metadata))
    found = dict(classify(pixels, top=pixels.size))
    real = ((pixels - mean) / std if scale else pixels / 255).ravel()
    np.testing.assert_allclose([found[label] for label in labels], real, atol=0.51 * scale + 1e-6)


@pytest.mark.parametrize("shape", [(28, 28), (0, 28, 1), (1, 28, 28, 1)])
def test_other_arrays_are_refused(shape: tuple[int, ...], classify: litebnn.Classifier) -> None:
    with pytest.raises(ValueError, match="expected uint8 \\[height, width, 3\\]"):
        classify(np.zeros(shape, np.uint8))


def test_a_file_without_labels_is_refused() -> None:
    with pytest.raises(litebnn.ConversionError, match="has no labels in its metadata"):
        litebnn.Classifier(DIGITS)
