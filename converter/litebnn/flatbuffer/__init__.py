"""Converts the bytes of a .tflite file to a graph, and a graph to bytes. No other folder knows the file's layout."""

from litebnn.flatbuffer.reader import read_model, read_strictly
from litebnn.flatbuffer.writer import write_model, write_result

__all__ = ["read_model", "read_strictly", "write_model", "write_result"]
