"""The bytes of a stranger's .tflite file -> Model, where what a runtime would read out of bounds is an error too."""

from __future__ import annotations

from typing import Any

from litebnn.errors import boundary
from litebnn.flatbuffer.reader import read_model
from litebnn.graph import Model


def read_strictly(content: bytes) -> Model:
    """Reads a whole .tflite file, as `read_model` does.

    Raises:
        ConversionError: the bytes are not a sound .tflite file, or a string in them ends outside of them.
    """
    with boundary():
        return read_model(_Bounded(content))


class _Bounded(bytes):
    """Bytes whose slices end inside them, where Python would quietly cut a string of a corrupt file short."""

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, slice) and key.stop is not None and key.stop > len(self):
            raise IndexError(f"byte {key.stop} of {len(self)}")
        return super().__getitem__(key)
