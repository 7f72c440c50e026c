from pathlib import Path
from typing import Any

import numpy as np
import pytest

import litebnn
from litebnn.analysis.quantization import parameters
from litebnn.evaluate.data_set import DataSet
from litebnn.quantize.calibration import observe_ranges
from tests.evaluate.data_sets import noise, npz
from tests.needs import need
from tests.support.float_models import FloatModel, sign_weights

pytestmark = pytest.mark.usefixtures("library")


@pytest.fixture
def source() -> bytes:
    """A float network for 28×28 grey images: a float convolution, a binary one, and a dense layer of 10 scores."""
    model, rng = FloatModel(), np.random.default_rng(0)
    x = model.conv(model.input(1, 28, 28, 1), rng.standard_normal((32, 5, 5, 1)).astype(np.float32), stride=(4, 4))
    y = model.conv(model.sign(x), sign_weights(rng, 8, 3, 3, 32))
    flat = model.reshape(y, 1, int(np.prod(y.shape)))
    return model.finish(model.dense(flat, rng.standard_normal((10, flat.shape[1])).astype(np.float32)))


def samples() -> list[np.ndarray]:
    images, _ = noise(40)
    return [image[None] for image in (images / 127.5 - 1).astype(np.float32)]


@pytest.mark.parametrize("batch_size", [3, 40])
def test_ranges_are_those_of_a_list(source: bytes, tmp_path: Path, batch_size: int) -> None:
    dataset = DataSet(npz(tmp_path / "a.npz", 40), batch_size=batch_size, workers=0)
    expected = litebnn.convert_tflite(source, representative_dataset=samples())
    assert litebnn.convert_tflite(source, representative_dataset=dataset) == expected


def test_a_model_without_floats_has_no_ranges(tmp_path: Path) -> None:
    model = FloatModel()
    x = model.input(1, 28, 28, 1, type="INT8")
    y = model.op("RELU", [x], x.shape, type="INT8")
    x.quantization = y.quantization = parameters(1 / 64)
    dataset = DataSet(npz(tmp_path / "a.npz", 4), workers=0)
    assert observe_ranges(model.model(y), dataset) == {}


def test_all_of_a_data_set_is_verified(source: bytes, tmp_path: Path) -> None:
    dataset = DataSet(npz(tmp_path / "a.npz", 40), batch_size=7, workers=0)
    for options in ({"verify": dataset}, {"verify": True, "representative_dataset": dataset}):
        _, report = litebnn.convert_tflite(source, return_report=True, **options)
        assert report.verification.samples == 40


@pytest.mark.deep
def test_processes_find_what_one_does(source: bytes, tmp_path: Path) -> None:
    need("evaluate")
    data, found = npz(tmp_path / "a.npz", 40), []
    for workers in (0, 2):
        dataset = DataSet(data, batch_size=7, workers=workers)
        options = {"representative_dataset": dataset, "verify": dataset, "return_report": True}
        found.append(litebnn.convert_tflite(source, **options))
    (first, report), (second, other) = found
    assert first == second
    assert report.verification == other.verification


def test_mistakes_are_conversion_errors(source: bytes, tmp_path: Path) -> None:
    np.savez(tmp_path / "small.npz", images=np.zeros((2, 5, 5), np.float32))
    np.savez(tmp_path / "infinite.npz", images=np.full((2, 28, 28, 1), np.inf, np.float32))
    for name, message in (
        ("nowhere", "nowhere is no file or folder"),
        ("small.npz", "a sample is [5, 5], the model takes [28, 28, 1]"),
        ("infinite.npz", 'tensor "'),
    ):
        with pytest.raises(litebnn.ConversionError, match="^representative_dataset: ") as error:
            litebnn.convert_tflite(source, representative_dataset=DataSet(tmp_path / name, workers=0))
        assert message in str(error.value)


@pytest.mark.parametrize(
    ("arguments", "kind", "message"),
    [
        ({"batch_size": 0}, ValueError, "batch_size is 0, expected a whole number of at least 1"),
        ({"workers": 1.5}, TypeError, "workers is 1.5, expected 0 to 1024"),
        ({"preprocess": 3}, TypeError, "preprocess is int, expected a text or a function"),
        ({"data": samples()}, TypeError, "data is list, expected a path or a function that yields batches"),
    ],
)
def test_a_wrong_argument_is_named(arguments: dict[str, Any], kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=f"^{message}$"):
        DataSet(**{"data": "images", **arguments})
