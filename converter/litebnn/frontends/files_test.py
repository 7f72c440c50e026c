import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

import litebnn
from litebnn.errors import ConversionError
from litebnn.frontends.files import file_to_tflite, keras_file_to_tflite
from tests.support.float_models import FloatModel


def archive(*members: str) -> Callable[[Path], None]:
    """Writes an archive as PyTorch does, with all members in one folder."""

    def write(path: Path) -> None:
        with zipfile.ZipFile(path, "w") as file:
            for member in members:
                file.writestr(f"{path.stem}/{member}", b"")

    return write


def content(data: bytes) -> Callable[[Path], object]:
    return lambda path: path.write_bytes(data)


ONNX = b"\x08\x08\x12\x07pytorch\x1a\x052.9.0"


@pytest.mark.parametrize(
    ("name", "write", "message"),
    [
        ("network.onnx", content(ONNX), "is an ONNX file, .*litebnn.convert_torch_model"),
        ("network", content(ONNX), "is an ONNX file"),
        ("network.onnx", content(b"\x3a\x03abc"), "is an ONNX file"),
        (
            "traced.pt",
            archive("data.pkl", "constants.pkl", "code/a.py"),
            "is TorchScript, .*litebnn.convert_torch_model",
        ),
        ("saved.pt", archive("data.pkl", "byteorder", "version"), "was written by torch.save"),
        ("network.keras", archive("model"), "is no .keras file"),
        ("network.h5", content(b"\x89HDF\r\n\x1a\n"), "network.h5 "),
        ("network.bin", content(bytes(100)), "is neither a .tflite, .keras, .h5 or .pt2 file nor a SavedModel folder"),
    ],
)
def test_a_file_that_cannot_be_converted_is_named_in_one_line(
    name: str, write: Callable[[Path], object], message: str, tmp_path: Path
) -> None:
    path = tmp_path / name
    write(path)
    for convert in (file_to_tflite, keras_file_to_tflite, litebnn.convert_keras_model):
        with pytest.raises(ConversionError, match=message) as caught:
            convert(path)
        assert len(str(caught.value).splitlines()) == 1


def test_a_path_of_a_keras_model_is_one_of_keras(tmp_path: Path) -> None:
    model, path = FloatModel(), tmp_path / "model.tflite"
    path.write_bytes(model.finish(model.elementwise("RELU", model.input(1, 4))))
    assert file_to_tflite(path) == path.read_bytes()
    with pytest.raises(ConversionError, match=r"is a \.tflite file, expected a \.keras or \.h5 file or a SavedModel"):
        litebnn.convert_keras_model(path)
    with pytest.raises(ConversionError, match=r"none\.keras cannot be read: No such file"):
        litebnn.convert_keras_model(str(tmp_path / "none.keras"))
