"""Converting a model: read it, run the passes, write it."""

from __future__ import annotations

import os
import warnings
from pathlib import Path

from litebnn.contract import BCONV_2D, CUSTOM_OPS
from litebnn.errors import ConversionError
from litebnn.flatbuffer import read_model, write_model
from litebnn.passes import run_passes


def convert_tflite(model: bytes | str | os.PathLike[str]) -> bytes:
    data = model if isinstance(model, bytes) else Path(model).read_bytes()
    graph = read_model(data)
    if any(op.name in CUSTOM_OPS for op in graph.ops()):
        return data
    run_passes(graph)
    if not any(op.name == BCONV_2D for op in graph.ops()):
        warnings.warn("the model holds no binary layer", stacklevel=2)
        return data
    return write_model(graph)
