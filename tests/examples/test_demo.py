"""Tests the demo in a short form: from training to an unmodified runtime."""

import gzip
import io
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from examples.mnist import demo
from examples.mnist.data import bundled_digits, mnist


@pytest.mark.parametrize(
    "trainer",
    [
        pytest.param("larq", marks=pytest.mark.needs("larq")),
        pytest.param("keras", marks=[pytest.mark.needs("keras"), pytest.mark.deep]),
    ],
)
def test_the_converted_network_recognises_digits_as_keras_does(trainer: str, tmp_path: Path) -> None:
    digits = bundled_digits()
    printed = io.StringIO()
    keras, float_model, binary = demo.run(trainer, digits, 6, Console(file=printed, width=120), tmp_path)
    images = len(digits.test_labels)
    assert keras.accuracy >= 0.9
    assert float_model.same_class == images
    assert binary.same_class >= 0.998 * images
    assert binary.bytes < float_model.bytes / 8
    assert f"{binary.same_class} of {images}" in printed.getvalue()
    assert {path.name for path in tmp_path.iterdir()} == {"digits.keras", "float.tflite", "binary.tflite", "labels.txt"}


def test_mnist_files_are_read(tmp_path: Path) -> None:
    images = np.random.default_rng(0).integers(0, 256, (10000, 28, 28), np.uint8)
    labels = (np.arange(10000) % 10).astype(np.uint8)
    for name, array in (("t10k-images-idx3-ubyte", images), ("t10k-labels-idx1-ubyte", labels)):
        header = np.array([0x800 + array.ndim, *array.shape], ">i4").tobytes()
        with gzip.open(tmp_path / f"{name}.gz", "wb", compresslevel=1) as file:
            file.write(header + array.tobytes())
    digits = mnist(tmp_path)
    assert digits.train_images.shape == (9000, 28, 28, 1)
    assert digits.test_images.dtype == np.float32
    np.testing.assert_allclose(digits.test_images[5, :, :, 0], images[9005] / 127.5 - 1, atol=1e-6)
    assert digits.test_labels.tolist() == labels[9000:].tolist()


IMAGES, LABELS = "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"
PACKED = gzip.compress(bytes(20000))


@pytest.mark.parametrize(
    ("name", "content"),
    [
        (f"{IMAGES}.gz", b""),
        (f"{IMAGES}.gz", b"\x1f\x8b broken"),
        (f"{IMAGES}.gz", b"not gzip at all"),
        (f"{IMAGES}.gz", PACKED[:-9]),
        (f"{IMAGES}.gz", PACKED[:12] + b"\xff" * 9 + PACKED[21:]),
        (IMAGES, b""),
        (IMAGES, b"12345"),
        (LABELS, b"\0\0\x08\x01\0\0\x27\x10" + b"\x0a" * 10000),
    ],
)
def test_wrong_data_is_one_line_and_exit_code_1(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, content: bytes
) -> None:
    if name == LABELS:
        header = np.array([0x803, 10000, 28, 28], ">i4").tobytes()
        (tmp_path / IMAGES).write_bytes(header + bytes(10000 * 28 * 28))
    (tmp_path / name).write_bytes(content)
    assert demo.main([f"--mnist={tmp_path}"]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"demo: {tmp_path / name}")


@pytest.mark.parametrize("epochs", ["0", "-1", "few"])
def test_a_wrong_number_of_epochs_is_an_error(capsys: pytest.CaptureFixture[str], epochs: str) -> None:
    with pytest.raises(SystemExit) as end:
        demo.main([f"--epochs={epochs}"])
    assert end.value.code == 2
    assert "--epochs" in capsys.readouterr().err.splitlines()[-1]


def test_missing_data_is_one_line_and_exit_code_1(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert demo.main([f"--mnist={tmp_path}"]) == 1
    assert "has neither t10k-images-idx3-ubyte.gz" in capsys.readouterr().err
