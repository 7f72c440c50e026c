"""Reads an untrusted .tflite file into a Model. In addition to `read_model`, it refuses strings that a runtime would
read out of bounds."""

from __future__ import annotations

from typing import Any

from litebnn.errors import boundary
from litebnn.flatbuffer.reader import read_model
from litebnn.graph import Model


def read_strictly(content: bytes) -> Model:
    """Reads a whole .tflite file, as `read_model` does.

    Raises:
        ConversionError: the bytes are not a valid .tflite file, or a string extends beyond their end.
    """
    with boundary():
        return read_model(_Bounded(content))


class _Bounded(bytes):
    """A byte string that raises an error if a slice ends beyond its end. Python itself would silently return a
    shorter string.
    """

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, slice) and key.stop is not None and key.stop > len(self):
            raise IndexError(f"byte {key.stop} of {len(self)}")
        return super().__getitem__(key)
