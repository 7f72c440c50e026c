"""Models that a function of the user's builds, named as `module:function`."""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from litebnn.errors import ConversionError
from litebnn.frontends.keras import keras_to_tflite
from litebnn.frontends.torch import torch_to_tflite


def callable_to_tflite(name: str, shapes: Sequence[tuple[int, ...]] = ()) -> bytes:
    """The float .tflite file of what a function gives that takes no arguments.

    Args:
        name: `module:function`, or `module:Class`; the module is looked for in the current folder first.
        shapes: of the inputs of a PyTorch module, batch first; not needed where the function gives a pair of module and
            example inputs.
    Raises:
        ConversionError: there is no such module or function, it fails, or gives neither a Keras model nor a module.

    Example:
        >>> callable_to_tflite("networks:quicknet")  # doctest: +SKIP
    """
    model, example = _built(name), None
    if isinstance(model, tuple) and len(model) == 2:
        model, example = model
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
    """What the function gives."""
    module, _, function = name.partition(":")
    if module.endswith(".py"):
        raise ConversionError(f"{name} names a file: expected the module that it holds, {Path(module).stem}:{function}")
    # The command line's own folder is not where the user is; that one may be gone, which an import does not mind.
    if "" not in sys.path:
        sys.path.insert(0, "")
    # Larq's layers are those of Keras 2, which TensorFlow has only where this is said before it is imported.
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
        said = next((line.strip() for line in str(error).splitlines() if line.strip()), "")
        raise ConversionError(f"{name} cannot be built: {type(error).__name__}: {said[:300]}") from error
