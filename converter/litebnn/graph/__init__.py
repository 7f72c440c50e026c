"""A .tflite model as a graph that is easy to rewrite; it does not know how the file is laid out."""

from litebnn.graph.compact import compact
from litebnn.graph.control_dependencies import check_control_dependencies, drop_control_dependencies
from litebnn.graph.custom_ops import check_custom_ops, mistakes
from litebnn.graph.graph import (
    NUMPY_TYPES,
    Array,
    Buffer,
    Graph,
    Model,
    Op,
    OpCode,
    Options,
    Quantization,
    Signature,
    Tensor,
    constant,
    packed_words,
)
from litebnn.graph.hazards import check_model
from litebnn.graph.op_facts import FACTS, Int8, builtin_op, facts
from litebnn.graph.validate import check_graph

__all__ = [
    "FACTS",
    "NUMPY_TYPES",
    "Array",
    "Buffer",
    "Graph",
    "Int8",
    "Model",
    "Op",
    "OpCode",
    "Options",
    "Quantization",
    "Signature",
    "Tensor",
    "builtin_op",
    "check_control_dependencies",
    "check_custom_ops",
    "check_graph",
    "check_model",
    "compact",
    "constant",
    "drop_control_dependencies",
    "facts",
    "mistakes",
    "packed_words",
]
