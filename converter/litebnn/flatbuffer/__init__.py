"""Converts the bytes of a .tflite file to a graph, and a graph to bytes. No other folder knows the file's layout."""

from litebnn.flatbuffer.archive import with_files_of
from litebnn.flatbuffer.reader import read_model, read_strictly
from litebnn.flatbuffer.writer import write_model

__all__ = ["read_model", "read_strictly", "with_files_of", "write_model"]
