"""Classification of photographs by a file with metadata."""

from pathlib import Path

import numpy as np
import pytest

import litebnn
from litebnn.flatbuffer import ImageClassifier, with_metadata

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


@pytest.mark.parametrize("shape", [(28, 28), (0, 28, 1), (1, 28, 28, 1)])
def test_other_arrays_are_refused(shape: tuple[int, ...], classify: litebnn.Classifier) -> None:
    with pytest.raises(ValueError, match="expected uint8 \\[height, width, 3\\]"):
        classify(np.zeros(shape, np.uint8))


def test_a_file_without_labels_is_refused() -> None:
    with pytest.raises(litebnn.ConversionError, match="has no labels in its metadata"):
        litebnn.Classifier(DIGITS)
