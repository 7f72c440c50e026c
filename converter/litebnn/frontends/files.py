"""Converts any model file or folder that the command line accepts to .tflite bytes."""

from __future__ import annotations

import importlib
import importlib.util
import json
import os
import sys
import zipfile
from pathlib import Path
from typing import Any

from litebnn.errors import ConversionError, told_by
from litebnn.files import open_file, read_file
from litebnn.frontends.keras import keras_to_tflite
from litebnn.frontends.tensorflow import load_tensorflow, saved_model_to_tflite
from litebnn.frontends.torch import program_to_tflite

_HDF5_MAGIC = b"\x89HDF\r\n\x1a\n"
_TFLITE_IDENTIFIER = b"TFL3"
_ADVICE = (
    "where the model is built, call litebnn.convert_keras_model(model), or model.export(FOLDER) and convert that folder"
)


# Advice on files of other formats.
_ONNX = (
    "is an ONNX file, which litebnn does not read: convert the PyTorch module itself, by litebnn.convert_torch_model, "
    "or make a .tflite file of it with another tool, such as onnx2tf"
)
_TORCH_SCRIPT = (
    "is TorchScript, which cannot be exported: convert the module it is made of, by litebnn.convert_torch_model"
)
_TORCH_SAVE = "was written by torch.save: save what torch.export.export gives by torch.export.save"


def file_to_tflite(path: Path) -> bytes:
    """Reads `.tflite`, `.keras`, `.h5` and `.pt2` files and SavedModel folders, recognized by their content.

    Raises:
        ConversionError: the path does not exist, or is not a model; the message says what was expected.
    """
    kind = _kind(path)
    if kind == ".tflite":
        try:
            return read_file(path)
        except OSError as error:
            raise _unreadable(path, error) from None
    return program_to_tflite(path) if kind == ".pt2" else _keras_to_tflite(path, kind)


def keras_file_to_tflite(path: Path) -> bytes:
    """Reads `.keras` and `.h5` files and SavedModel folders, recognized by their content.

    Raises:
        ConversionError: the path does not exist, or is none of these; the message says what was expected.
    """
    kind = _kind(path)
    if kind in (".tflite", ".pt2"):
        raise ConversionError(f"{path} is a {kind} file, expected a .keras or .h5 file or a SavedModel folder")
    return _keras_to_tflite(path, kind)


def _keras_to_tflite(path: Path, kind: str) -> bytes:
    if kind == "SavedModel":
        return saved_model_to_tflite(path)
    version = _version_of_hdf5(path) if kind == ".h5" else _version_of_archive(path)
    return keras_to_tflite(_load_keras(path, version))


def _unreadable(path: Path, error: OSError) -> ConversionError:
    return ConversionError(f"{path} cannot be read: {error.strerror}")


def _kind(path: Path) -> str:
    """The suffix of files of this format; "SavedModel" for a folder.

    Raises:
        ConversionError: the path does not exist, or is not a model.
    """
    try:
        if path.is_dir():
            return "SavedModel"
        with open_file(path) as file:
            head = file.read(8)
    except OSError as error:
        raise _unreadable(path, error) from None
    if head[4:8] == _TFLITE_IDENTIFIER:
        return ".tflite"
    if head.startswith(_HDF5_MAGIC):
        return ".h5"
    if zipfile.is_zipfile(path):
        return _kind_of_archive(path)
    # An ONNX file begins with the version of its format and the name of the program that wrote it.
    if path.suffix == ".onnx" or (head[:1] == b"\x08" and head[2:3] == b"\x12"):
        raise ConversionError(f"{path} {_ONNX}")
    raise ConversionError(f"{path} is neither a .tflite, .keras, .h5 or .pt2 file nor a SavedModel folder")


def _kind_of_archive(path: Path) -> str:
    """The kind of an archive of PyTorch or Keras. In one of PyTorch, all members lie in one folder."""
    try:
        with zipfile.ZipFile(path) as archive:
            names = {name.partition("/")[2] for name in archive.namelist()}
    except zipfile.BadZipFile:
        return ".keras"
    if "data.pkl" in names:
        raise ConversionError(f"{path} {_TORCH_SCRIPT if 'constants.pkl' in names else _TORCH_SAVE}")
    return ".pt2" if "archive_format" in names else ".keras"


def _version_of_archive(path: Path) -> str:
    try:
        with zipfile.ZipFile(path) as archive:
            return str(json.loads(archive.read("metadata.json"))["keras_version"])
    except (KeyError, TypeError, ValueError, zipfile.BadZipFile):
        raise ConversionError(f"{path} is no .keras file: its metadata.json is missing or broken") from None


def _version_of_hdf5(path: Path) -> str:
    try:
        h5py = importlib.import_module("h5py")
        with h5py.File(path, "r") as file:
            if "model_config" not in file.attrs:
                raise ConversionError(f"{path} holds no model (weights only?): save the whole model")
            version = file.attrs.get("keras_version", "2")
            return version.decode() if isinstance(version, bytes) else str(version)
    except ImportError:
        raise ConversionError(f"reading {path} needs h5py (pip install tensorflow)") from None
    except OSError as error:
        raise ConversionError(f"{path} cannot be read as HDF5: {error}") from None


def _load_keras(path: Path, version: str) -> Any:
    """Loads a file with the Keras version that wrote it, after registering the layers of larq or litebnn.keras."""
    keras = _keras_2(path, version) if version.startswith("2") else _keras_3(path, version)
    try:
        return keras.models.load_model(path, compile=False)
    except Exception as error:
        # TensorFlow's attribute `keras` is a part of the package, or an object that loads it later. Neither has a
        # version, so the whole package is imported.
        package = importlib.import_module(keras.Model.__module__.partition(".")[0])
        loader, said = f"{package.__name__} {package.__version__}", told_by(error).rstrip(".")
        raise ConversionError(
            f"{path} was written by Keras {version} and cannot be loaded by {loader}: {said}; {_ADVICE}"
        ) from error


def _keras_2(path: Path, version: str) -> Any:
    if "tensorflow" not in sys.modules:
        os.environ.setdefault("TF_USE_LEGACY_KERAS", "1")
    keras = load_tensorflow().keras
    if not str(getattr(keras, "__version__", "2")).startswith("2"):
        try:
            keras = importlib.import_module("tf_keras")
        except ImportError:
            raise ConversionError(
                f"{path} was written by Keras {version}: loading it needs pip install tf-keras"
            ) from None
    if importlib.util.find_spec("larq") is not None:
        importlib.import_module("larq")
    return keras


def _keras_3(path: Path, version: str) -> Any:
    """Loads a file with Keras 3 on the backend that KERAS_BACKEND names, by default TensorFlow."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    try:
        importlib.import_module("litebnn.keras")
    except ImportError as error:
        raise ConversionError(f"{path} was written by Keras {version}: {error}") from None
    return importlib.import_module("keras")
