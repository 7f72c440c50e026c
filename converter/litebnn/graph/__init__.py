"""A .tflite model as a graph that is easy to rewrite. This folder's code does not know the layout of the file."""

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
    QuantizationDetails,
    Signature,
    Tensor,
    bits_of_type,
    packed_words,
)
from litebnn.graph.makers import builtin_op, constant, derived, like, unique_names
from litebnn.graph.op_facts import FACTS, Int8, facts
from litebnn.graph.origin import (
    Counted,
    Negated,
    Origin,
    Reshaped,
    Transposed,
    read_origins,
    then,
)
from litebnn.graph.questions import Question
from litebnn.graph.rewriting import begin_rewriting, compact, finish_rewriting

__all__ = [
    "FACTS",
    "NUMPY_TYPES",
    "Array",
    "Buffer",
    "Counted",
    "Graph",
    "Int8",
    "Model",
    "Negated",
    "Op",
    "OpCode",
    "Options",
    "Origin",
    "Quantization",
    "QuantizationDetails",
    "Question",
    "Reshaped",
    "Signature",
    "Tensor",
    "Transposed",
    "begin_rewriting",
    "bits_of_type",
    "builtin_op",
    "compact",
    "constant",
    "derived",
    "facts",
    "finish_rewriting",
    "like",
    "packed_words",
    "read_origins",
    "then",
    "unique_names",
]
