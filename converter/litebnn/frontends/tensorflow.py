"""What the frontends share: a concrete function of TensorFlow -> the bytes of a float .tflite file."""

from __future__ import annotations

import importlib
import io
import os
import re
from collections.abc import Callable, Sequence
from contextlib import redirect_stderr
from typing import Any

from litebnn.errors import ConversionError


def load_tensorflow() -> Any:
    """The tensorflow module.

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
    """Sets an unknown batch size to 1.

    Raises:
        ConversionError: another dimension of an input is unknown.
    """
    for tensor in function.inputs:
        if tensor.dtype.name == "resource" or tensor.shape.rank is None:
            continue
        shape = tensor.shape.as_list()
        if None in shape[1:]:
            raise ConversionError(
                f'input "{tensor.name}" has shape {shape}: only the first dimension may be unknown; '
                "build the model with a fixed input shape"
            )
        if shape and shape[0] is None:
            tensor.set_shape([1, *shape[1:]])


def trace(call: Callable[..., Any], specs: Sequence[Any]) -> Any:
    """The concrete function of what a call computes.

    Args:
        call: takes a tensor for each of the specs.
        specs: shapes and types, tensorflow.TensorSpec.

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
    """What the error says that lies below the lines of code through which TensorFlow has passed it on."""
    lines = [line.strip() for line in re.sub("\x1b\\[[0-9;]*m", "", said).splitlines() if line.strip()]
    errors = [place for place, line in enumerate(lines) if re.match(r"\w+(Error|Exception): ", line)]
    place = errors[-1] if errors else 0
    # Keras says first where it was, and then what is wrong.
    passed_on = "Exception encountered when calling" in lines[place] and place + 1 < len(lines)
    return lines[place + passed_on][:300] if lines else "it does not say why"


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
        raise ConversionError(f"TensorFlow's converter refuses the model: {first_line(error)}") from error


def first_line(error: Exception) -> str:
    """What an error says first, cut to a line that can be read."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0][:300] if lines else type(error).__name__
