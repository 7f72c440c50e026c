"""A .tflite model as a graph that is easy to rewrite; it does not know how the file is laid out."""

from litebnn.graph.compact import compact
from litebnn.graph.graph import (
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
from litebnn.graph.validate import check_graph

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
    "check_graph",
    "compact",
    "constant",
    "packed_words",
]
