"""The bytes of a .tflite file <-> a graph; nothing outside this folder knows how the file is laid out."""

from litebnn.flatbuffer.reader import read_model
from litebnn.flatbuffer.strict import read_strictly
from litebnn.flatbuffer.writer import write_model

__all__ = ["read_model", "read_strictly", "write_model"]
