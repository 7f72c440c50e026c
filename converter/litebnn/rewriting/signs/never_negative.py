"""Tensors that are never negative, whose SIGN takes 0 and 1."""

from __future__ import annotations

from litebnn.contract import ACTIVATION_RANGES
from litebnn.graph import Graph, Tensor, facts
from litebnn.rewriting.int8 import lowest_value
from litebnn.rewriting.match import fused_activation

_NEVER_NEGATIVE = ("ABS", "EXP", "LOGISTIC", "SOFTMAX", "SQRT", "SQUARE")
_OF_THE_SAME_SIGN = (
    "AVERAGE_POOL_2D",
    "DEQUANTIZE",
    "MAX_POOL_2D",
    "MEAN",
    "QUANTIZE",
    "REDUCE_MAX",
    "REDUCE_MIN",
    "SUM",
    "TANH",
)
_FARTHEST = 8


def is_never_negative(graph: Graph, tensor: Tensor) -> bool:
    """True if a tensor's ops or its grid exclude negative numbers."""
    if lowest_value(graph, tensor) >= 0:
        return True
    for _ in range(_FARTHEST):
        op = graph.producer(tensor)
        if op is None or not op.inputs or op.inputs[0] is None:
            return False
        activation = fused_activation(op)
        clamp = activation if facts(op).clamp is None else facts(op).clamp
        if op.name in _NEVER_NEGATIVE or (clamp is not None and ACTIVATION_RANGES[clamp][0] >= 0):
            return True
        if op.name not in _OF_THE_SAME_SIGN and not facts(op).moves:
            return False
        tensor = op.input(0)
    return False
