"""Converts networks of larq-zoo with litebnn."""

from pathlib import Path
from typing import Any

import numpy as np

from bench.zoo import model_file
from litebnn.convert import convert_tflite

SAMPLES = 2  # random images that calibrate the ranges of int8 tensors


def convert_network(name: str, *, int8: bool = False) -> Path:
    """Converts a network and returns the new file, NAME.litebnn.tflite.

    With `int8`, layers that are not binary become int8, and the file is NAME.int8.tflite.
    """
    source = model_file(name, "float")
    path = source.with_name(f"{name}.{'int8' if int8 else 'litebnn'}.tflite")
    options: dict[str, Any] = {}
    if int8:
        images = np.random.default_rng(5).standard_normal((SAMPLES, 1, 224, 224, 3)).astype(np.float32)
        options["representative_dataset"] = list(images)
    path.write_bytes(convert_tflite(source, **options))
    return path
