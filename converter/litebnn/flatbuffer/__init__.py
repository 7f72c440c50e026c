"""Converts the bytes of a .tflite file to a graph, and a graph to bytes. No other folder knows the file's layout."""

from litebnn.flatbuffer.metadata import ImageClassifier, labels_in, read_metadata, with_metadata
from litebnn.flatbuffer.reader import read_model
from litebnn.flatbuffer.result import write_result
from litebnn.flatbuffer.strict import read_strictly
from litebnn.flatbuffer.writer import write_model

__all__ = [
    "ImageClassifier",
    "labels_in",
    "read_metadata",
    "read_model",
    "read_strictly",
    "with_metadata",
    "write_model",
    "write_result",
]
