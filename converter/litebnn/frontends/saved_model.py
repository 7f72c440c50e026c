"""Converts SavedModel folders to .tflite bytes."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from litebnn.errors import ConversionError, told_by
from litebnn.frontends.interface import SIGNATURE, sort_interface
from litebnn.frontends.tensorflow import fix_batch, load_tensorflow, to_tflite


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
