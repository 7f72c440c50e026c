"""The bytes of a .tflite file <-> a small graph; nothing outside this folder knows how the file is laid out."""

from litebnn.flatbuffer.graph import (
    NUMPY_TYPES,
    Array,
    Buffer,
    Graph,
    Model,
    Op,
    OpCode,
    Signature,
    Tensor,
    constant,
    packed_words,
)
from litebnn.flatbuffer.reader import read_model
from litebnn.flatbuffer.schema import schema
from litebnn.flatbuffer.writer import write_model

__all__ = [
    "NUMPY_TYPES",
    "Array",
    "Buffer",
    "Graph",
    "Model",
    "Op",
    "OpCode",
    "Signature",
    "Tensor",
    "constant",
    "packed_words",
    "read_model",
    "schema",
    "write_model",
]
