"""Converts the bytes of a .tflite file to a graph, and a graph to bytes. No other folder knows the file's layout."""

from typing import Any

from litebnn.flatbuffer.reader import read_model, read_strictly
from litebnn.flatbuffer.writer import write_model, write_result

__all__ = ["read_model", "read_strictly", "write_model", "write_result"]


def __getattr__(name: str) -> Any:
    """Imports the metadata when they are asked for, because a conversion does not need them."""
    if name not in ("ImageClassifier", "labels_in", "read_metadata", "with_metadata"):
        raise AttributeError(f"module 'litebnn.flatbuffer' has no attribute '{name}'")
    from litebnn.flatbuffer import metadata

    return getattr(metadata, name)
