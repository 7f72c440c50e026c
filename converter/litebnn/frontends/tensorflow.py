"""Converts a concrete TensorFlow function to the bytes of a float .tflite file, for several frontends."""

from __future__ import annotations

import importlib
import io
import os
import re
from collections.abc import Callable, Sequence
from contextlib import redirect_stderr
from typing import Any

from litebnn.errors import ConversionError, shortened, told_by


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
