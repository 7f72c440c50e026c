"""Converts models that a user's function builds. The function is named as `module:function`."""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from litebnn.errors import ConversionError, told_by
from litebnn.frontends.keras import keras_to_tflite
from litebnn.frontends.torch import torch_to_tflite


def callable_to_tflite(name: str, shapes: Sequence[tuple[int, ...]] = ()) -> bytes:
    """The float .tflite file of the model that a function without arguments returns.

    `name` is `module:function`, or `module:Class`; Python searches the current folder for the module first. `shapes`
    are the input shapes of a PyTorch module, batch first. They are not needed if the function returns a pair of module
    and example inputs.

    Raises:
        ConversionError: there is no such module or function, the function fails, or returns neither a Keras model nor a
            module.

    Example:
        >>> callable_to_tflite("networks:quicknet")  # doctest: +SKIP
    """
    model, example = _built(name), None
    if isinstance(model, tuple) and len(model) == 2:
        model, example = model
        if shapes:
            raise ConversionError(f"--input-shape has no effect: {name} gives a module with example inputs")
    if not any(base.__module__.startswith("torch.") for base in type(model).__mro__):
        if shapes:
            raise ConversionError(f"--input-shape is for a PyTorch module, and {name} gives a {type(model).__name__}")
        return keras_to_tflite(model)
    if example is None:
        if not shapes:
            raise ConversionError(f"{name} gives a PyTorch module: say its inputs' shapes by --input-shape")
        torch = importlib.import_module("torch")
        example = [torch.randn(shape) for shape in shapes]
    return torch_to_tflite(model, example, channels_last=False)


def _built(name: str) -> Any:
    """The result of the user's function."""
    module, _, function = name.partition(":")
    if module.endswith(".py"):
        raise ConversionError(f"{name} names a file: expected the module that it holds, {Path(module).stem}:{function}")
    # Python adds the folder of the command's script to sys.path, but not the current folder. The entry "" stands for
    # the current folder, even if that folder has been removed.
    if "" not in sys.path:
        sys.path.insert(0, "")
    # Larq needs Keras 2. TensorFlow provides Keras 2 only if this variable is set before the import.
    if importlib.util.find_spec("larq") is not None:
        os.environ.setdefault("TF_USE_LEGACY_KERAS", "1")
    try:
        build: Any = importlib.import_module(module)
        for part in function.split("."):
            build = getattr(build, part)
        return build()
    except ConversionError:
        raise
    except Exception as error:
        raise ConversionError(f"{name} cannot be built: {type(error).__name__}: {told_by(error)}") from error
