"""Writes the bytes of a rewritten model, which are checked before a caller gets them."""

from __future__ import annotations

from litebnn.flatbuffer.metadata import with_files_of
from litebnn.flatbuffer.reader import read_model
from litebnn.flatbuffer.writer import write_model
from litebnn.graph import Model
from litebnn.safety import check_loads


def write_result(model: Model, source: bytes) -> bytes:
    """Writes a rewritten model. If files in a zip archive follow the bytes of the model's source, they also follow the
    result.

    Raises:
        ConversionError: no runtime would load the result; the message says why.
    """
    result = with_files_of(source, write_model(model))
    check_loads(read_model(result), "the converted model")
    return result
