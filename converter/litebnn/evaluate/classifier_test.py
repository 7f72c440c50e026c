"""Tests the classification of photographs by a file with metadata."""

import io
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import litebnn
from litebnn.flatbuffer.metadata import ImageClassifier, with_metadata
from tests.support.float_models import FloatModel
from tests.support.programs import pixels_model

DIGITS = (Path(__file__).resolve().parents[3] / "examples" / "label_image" / "digits.tflite").read_bytes()
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


def test_rows_of_different_lengths_are_no_image(classify: litebnn.Classifier) -> None:
    with pytest.raises(ValueError, match="^an image is \\[\\[1, 2\\], \\[3\\]\\], expected uint8"):
        classify([[1, 2], [3]])


@pytest.mark.parametrize("shape", [(28, 28), (0, 28, 1), (1, 28, 28, 1)])
def test_other_arrays_are_refused(shape: tuple[int, ...], classify: litebnn.Classifier) -> None:
    with pytest.raises(ValueError, match="expected uint8 \\[height, width, 3\\]"):
        classify(np.zeros(shape, np.uint8))


@pytest.mark.usefixtures("library")
@pytest.mark.parametrize("shape", [(4,), (1, 4), (1, 1, 1, 4), (2, 4), (2, 1, 1, 4)])
def test_scores_may_have_dimensions_of_size_1(shape: tuple[int, ...]) -> None:
    batch = shape[0] if len(shape) > 1 else 1
    pixels = np.random.default_rng(2).integers(0, 256, (2, 2, 1), np.uint8)
    classify = litebnn.Classifier(model_giving(shape, (batch, 2, 2, 1)))
    assert dict(classify(pixels)) == {f"class {n}": value for n, value in enumerate(pixels.ravel().tolist())}


@pytest.mark.usefixtures("library")
def test_scores_that_are_not_one_for_each_label_are_refused() -> None:
    two_rows = litebnn.Classifier(model_giving((2, 2), (1, 2, 2, 1)))
    with pytest.raises(ValueError, match=r"^the model gives \[2, 2\], expected a score for each of its 2 labels$"):
        two_rows(np.zeros((2, 2, 1), np.uint8))
    # The labels come from an archive after the model, which any tool may replace.
    model, archive = model_giving((1, 4), (1, 2, 2, 1)), io.BytesIO()
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("labels.txt", "cat\ndog\ncow\n")
    fewer_labels = litebnn.Classifier(model[: model.rfind(b"PK\3\4")] + archive.getvalue())
    with pytest.raises(ValueError, match=r"gives \[1, 4\], expected a score for each of its 3 labels$"):
        fewer_labels(np.zeros((2, 2, 1), np.uint8))


def model_giving(scores: tuple[int, ...], images: tuple[int, ...]) -> bytes:
    """A model that returns its pixels as scores of this shape, with metadata of four labels."""
    graph = FloatModel()
    model = graph.finish(graph.reshape(graph.input(*images), *scores))
    metadata = ImageClassifier("pixels", labels=tuple(f"class {n}" for n in range(scores[-1])), mean=(0.0,), std=(1.0,))
    return with_metadata(model, metadata)


@pytest.mark.parametrize(
    ("top", "kind", "reason"),
    [(0, ValueError, "0"), (-1, ValueError, "-1"), (2.5, TypeError, "2.5"), (True, TypeError, "True")],
)
def test_top_is_a_whole_number(top: Any, kind: type[Exception], reason: str, classify: litebnn.Classifier) -> None:
    with pytest.raises(kind, match=f"^top is {reason}, expected a whole number of at least 1$"):
        classify(np.zeros((28, 28, 1), np.uint8), top=top)
    assert len(classify(np.zeros((28, 28, 1), np.uint8), top=10**9)) == 10


def test_a_file_without_labels_is_refused() -> None:
    with pytest.raises(litebnn.ConversionError, match="has no labels in its metadata"):
        litebnn.Classifier(DIGITS)
