"""Tests label_image with models whose metadata has their labels and preprocessing."""

import io
import zipfile
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from litebnn.evaluate.recipes import automatic_recipe, open_recipe
from litebnn.flatbuffer.metadata import ImageClassifier, read_metadata, with_metadata
from litebnn.zoo.preprocessing import CROP, MEAN, STD
from tests.support.programs import error_of, host_programs, pixels_model, run, scores

SHAPE = (6, 8, 3)
LABELS = tuple(f"Wert {n}, größer" for n in range(int(np.prod(SHAPE))))
ZOO = ImageClassifier("pixels", labels=LABELS, mean=MEAN, std=STD, crop=CROP)


@pytest.fixture(scope="module")
def command() -> list[Path]:
    return [host_programs() / "label_image"]


@pytest.fixture
def image(tmp_path: Path) -> Path:
    pixels = np.random.default_rng(3).integers(0, 256, (37, 50, 3), np.uint8)
    Image.fromarray(pixels).save(tmp_path / "image.png")
    return tmp_path / "image.png"


def model(folder: Path, metadata: ImageClassifier = ZOO, *grid: object) -> Path:
    """A model that returns the values of its input, with metadata; `grid` is type, scale and zero point."""
    path = folder / "pixels.tflite"
    path.write_bytes(with_metadata(pixels_model((1, *SHAPE), *grid), metadata))
    return path


def fed(command: list[Path], **flags: object) -> np.ndarray:
    result = run(command, num_results=10**6, **flags)
    assert result.returncode == 0, result.stderr
    values = np.empty(np.prod(SHAPE))
    for index, score in scores(result.stdout).items():
        values[index] = score
    return values.reshape(SHAPE)


def expected(image: Path, metadata: ImageClassifier) -> np.ndarray:
    """The input that `litebnn evaluate` makes of an image, for a model with this metadata."""
    return open_recipe(automatic_recipe([metadata])).prepared()(np.asarray(Image.open(image)), SHAPE)


@pytest.mark.parametrize("crop", [CROP, 0.3, 1.0])
def test_the_metadata_says_how_to_preprocess(crop: float, command: list[Path], image: Path, tmp_path: Path) -> None:
    metadata = ImageClassifier(labels=LABELS, mean=MEAN, std=STD, crop=crop)
    values = fed(command, tflite_model=model(tmp_path, metadata), image=image)
    np.testing.assert_allclose(values, expected(image, metadata), atol=1e-4)


@pytest.mark.parametrize("size", [(1, 1), (1, 5), (3, 1)])
def test_a_crop_has_at_least_one_pixel(size: tuple[int, int], command: list[Path], tmp_path: Path) -> None:
    pixels = np.random.default_rng(5).integers(0, 256, (*size, 3), np.uint8)
    Image.fromarray(pixels).save(tmp_path / "image.png")
    values = fed(command, tflite_model=model(tmp_path), image=tmp_path / "image.png")
    np.testing.assert_allclose(values, expected(tmp_path / "image.png", ZOO), atol=1e-4)


@pytest.mark.parametrize("kind", ["PNG", "JPEG"])
@pytest.mark.parametrize("size", [SHAPE[:2], (37, 50)], ids=["fitting", "larger"])
@pytest.mark.parametrize("crop", [None, CROP])
@pytest.mark.parametrize(("dtype", "scale", "zero_point"), [("UINT8", 1 / 40, 100), ("INT8", 1 / 40, -28)])
def test_quantized_models_get_the_levels_of_what_float_ones_get(
    command: list[Path], tmp_path: Path, dtype: str, scale: float, zero_point: int, crop, size, kind: str
) -> None:
    pixels = np.random.default_rng(4).integers(0, 256, (*size, 3), np.uint8)
    Image.fromarray(pixels).save(tmp_path / "image", kind)
    metadata = ImageClassifier(labels=LABELS, mean=MEAN, std=STD, crop=crop)
    of_float = fed(command, tflite_model=model(tmp_path, metadata), image=tmp_path / "image")
    levels = fed(command, tflite_model=model(tmp_path, metadata, dtype, scale, zero_point), image=tmp_path / "image")
    limits = np.iinfo(dtype.lower())
    real = np.clip(of_float, (limits.min - zero_point) * scale, (limits.max - zero_point) * scale)
    np.testing.assert_allclose(levels, real, atol=scale * 0.501)
    np.testing.assert_allclose(levels / scale, np.rint(levels / scale), atol=1e-3)


def test_without_a_crop_the_whole_image_is_resized(command: list[Path], image: Path, tmp_path: Path) -> None:
    metadata = ImageClassifier(labels=LABELS, mean=(100.0,), std=(3.0,))
    values = fed(command, tflite_model=model(tmp_path, metadata), image=image)
    plain = tmp_path / "plain.tflite"
    plain.write_bytes(pixels_model((1, *SHAPE), "FLOAT32", 0, 0))
    np.testing.assert_array_equal(values, fed(command, tflite_model=plain, image=image, input_mean=100, input_std=3))


def test_flags_come_before_the_metadata(command: list[Path], image: Path, tmp_path: Path) -> None:
    values = fed(command, tflite_model=model(tmp_path), image=image, input_mean=0, input_std=1)
    raw = expected(image, ZOO) * np.array(STD) + np.array(MEAN)
    np.testing.assert_allclose(values, raw, atol=1e-2)


def test_labels_are_printed_and_those_of_the_flag_come_first(command: list[Path], image: Path, tmp_path: Path) -> None:
    result = run(command, tflite_model=model(tmp_path), image=image, num_results=1)
    assert result.stdout.splitlines()[-1].endswith(", größer")
    (tmp_path / "labels.txt").write_text("".join(f"mine {n}\n" for n in range(len(LABELS))))
    result = run(command, tflite_model=model(tmp_path), image=image, num_results=1, labels=tmp_path / "labels.txt")
    assert " mine " in result.stdout.splitlines()[-1]


@pytest.mark.parametrize("number", [float("nan"), float("inf")])
def test_a_deviation_that_is_not_finite_is_refused(
    number: float, command: list[Path], image: Path, tmp_path: Path
) -> None:
    path = model(tmp_path, ImageClassifier(labels=LABELS, mean=MEAN, std=STD), "INT8", 0.05, 3)
    content, written = path.read_bytes(), np.float32(STD[2]).tobytes()
    assert content.count(written) == 1
    path.write_bytes(content.replace(written, np.float32(number).tobytes()))
    problem = "its metadata normalizes pixels by a number that is not finite"
    assert error_of(run(command, tflite_model=path, image=image)) == f"{path}: {problem}"


def test_a_compressed_archive_is_refused(command: list[Path], image: Path, tmp_path: Path) -> None:
    path = model(tmp_path)
    content = path.read_bytes()
    whole = io.BytesIO(content[: content.rfind(b"PK\3\4")])
    whole.seek(0, io.SEEK_END)
    with zipfile.ZipFile(whole, "a", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("labels.txt", "\n".join(LABELS))
    path.write_bytes(whole.getvalue())
    assert read_metadata(path.read_bytes()).labels == LABELS
    result = run(command, tflite_model=path, image=image)
    assert error_of(result) == f"{path}: its labels.txt is compressed, expected a stored file"


@pytest.mark.deep
def test_damaged_metadata_is_one_line_or_other_words(command: list[Path], image: Path, tmp_path: Path) -> None:
    plain = tuple(f"class {n}" for n in range(len(LABELS)))  # whose bytes remain text when one changes
    content = model(tmp_path, ImageClassifier("pixels", labels=plain, mean=MEAN, std=STD, crop=CROP)).read_bytes()
    rng = np.random.default_rng(0)
    places = [content.rfind(b"M001"), content.find(b"PK\3\4"), content.find(b"PK\1\2"), content.find(b"PK\5\6")]
    refused = 0
    for _ in range(150):
        damaged = bytearray(content)
        start = int(rng.choice(places)) - 4
        for at in rng.integers(start, min(start + 300, len(content)), 3):
            damaged[at] = rng.choice((0, 1, 64, 126))
        (tmp_path / "pixels.tflite").write_bytes(damaged)
        result = run(command, tflite_model=tmp_path / "pixels.tflite", image=image)
        assert result.returncode in (0, 1), result
        if result.returncode:
            assert error_of(result)
            refused += 1
    assert refused > 20
