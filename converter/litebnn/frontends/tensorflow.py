"""Converts SavedModel folders, and for several frontends a concrete TensorFlow function, to the bytes of a float
.tflite file."""

from __future__ import annotations

import importlib
import io
import os
import re
from collections.abc import Callable, Sequence
from contextlib import redirect_stderr
from pathlib import Path
from typing import Any

from litebnn.errors import ConversionError, shortened, told_by
from litebnn.frontends.interface import SIGNATURE, sort_interface


def saved_model_to_tflite(saved_model_dir: str | os.PathLike[str]) -> bytes:
    """The float .tflite file of a SavedModel's `serving_default` signature; an unknown batch size becomes 1.

    A signature has names but no order. Therefore inputs and outputs are sorted by name, "output_2" before "output_10".

    Raises:
        ConversionError: the folder is not a SavedModel, the SavedModel lacks the signature, or TensorFlow's converter
            refuses it.
    """
    path = Path(saved_model_dir)
    if not (path / "saved_model.pb").is_file() and not (path / "saved_model.pbtxt").is_file():
        raise ConversionError(f"{path} is no SavedModel folder: it holds no saved_model.pb")
    tensorflow = load_tensorflow()
    try:
        loaded: Any = tensorflow.saved_model.load(str(path))
    except Exception as error:
        raise ConversionError(f"{path} cannot be loaded as a SavedModel: {told_by(error)}") from error
    if SIGNATURE not in loaded.signatures:
        raise ConversionError(f"{path} has signatures {sorted(loaded.signatures)}, expected {SIGNATURE}")
    function = loaded.signatures[SIGNATURE]
    fix_batch(function)
    return sort_interface(to_tflite(function, loaded))


def load_tensorflow() -> Any:
    """Imports the module tensorflow.

    Raises:
        ConversionError: TensorFlow is not installed.
    """
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    try:
        return importlib.import_module("tensorflow")
    except ImportError as error:
        raise ConversionError(
            f"converting Keras models and SavedModels needs TensorFlow (pip install tensorflow): {error}"
        ) from None


def fix_batch(function: Any) -> None:
    """Sets the unknown batch size of each input to 1. Other unknown sizes, such as height and width, stay unknown."""
    for tensor in function.inputs:
        if tensor.dtype.name == "resource" or tensor.shape.rank is None:
            continue
        shape = tensor.shape.as_list()
        if shape and shape[0] is None:
            tensor.set_shape([1, *shape[1:]])


def trace(call: Callable[..., Any], specs: Sequence[Any]) -> Any:
    """Traces a call into a concrete function.

    Args:
        call: a function that takes a tensor for each of the specs.
        specs: the shapes and types, as tensorflow.TensorSpec.

    Raises:
        ConversionError: the call fails on such tensors.
    """
    try:
        return load_tensorflow().function(call, input_signature=specs).get_concrete_function()
    except ConversionError:
        raise
    except Exception as error:
        raise ConversionError(f"TensorFlow cannot trace the model: {_reason(str(error))}") from error


def _reason(said: str) -> str:
    """The original error in a message of TensorFlow. TensorFlow's message begins with the calls through which the error
    passed.
    """
    lines = [line.strip() for line in re.sub("\x1b\\[[0-9;]*m", "", said).splitlines() if line.strip()]
    errors = [place for place, line in enumerate(lines) if re.match(r"\w+(Error|Exception): ", line)]
    place = errors[-1] if errors else 0
    # Keras names the layer in the first line of the message, and the error in the next line.
    passed_on = "Exception encountered when calling" in lines[place] and place + 1 < len(lines)
    return shortened(lines[place + passed_on]) if lines else "it does not say why"


def to_tflite(function: Any, trackable: Any) -> bytes:
    """Converts one concrete function without any optimization.

    Raises:
        ConversionError: TensorFlow's converter refuses the function.
    """
    tensorflow = load_tensorflow()
    converter = tensorflow.lite.TFLiteConverter.from_concrete_functions([function], trackable)
    try:
        with redirect_stderr(io.StringIO()):
            return bytes(converter.convert())
    except Exception as error:
        raise ConversionError(f"TensorFlow's converter refuses the model: {told_by(error)}") from error
