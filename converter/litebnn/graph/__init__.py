"""A .tflite model as a graph that is easy to rewrite. This folder's code does not know the layout of the file."""

from litebnn.graph.compact import compact
from litebnn.graph.custom_ops import check_custom_ops, mistakes
from litebnn.graph.fields import FIELDS, Fate, Field, fields_that_hold
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
from litebnn.graph.makers import builtin_op, constant, derived, like
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
from litebnn.graph.rewriting import begin_rewriting, finish_rewriting

__all__ = [
    "FACTS",
    "FIELDS",
    "NUMPY_TYPES",
    "Array",
    "Buffer",
    "Counted",
    "Fate",
    "Field",
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
    "check_custom_ops",
    "compact",
    "constant",
    "derived",
    "facts",
    "fields_that_hold",
    "finish_rewriting",
    "like",
    "mistakes",
    "packed_words",
    "read_origins",
    "then",
]
