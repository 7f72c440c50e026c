"""The values of tensors that are computed from constants."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from litebnn.graph import NUMPY_TYPES, Array, Graph, Op, Tensor
from litebnn.rewriting.int8 import dequantized
from litebnn.rewriting.match import fused_activation

_DEEPEST = 32  # ops between a constant and the weights


_SMALL = 1 << 20  # elements that a broadcast may grow to beyond its largest operand


_ELEMENTWISE: dict[str, Callable[..., Any]] = {
    "SIGN": np.sign,
    "NEG": np.negative,
    "ABS": np.abs,
    "ADD": np.add,
    "SUB": np.subtract,
    "MUL": np.multiply,
    "DIV": np.divide,
    "MAXIMUM": np.maximum,
    "MINIMUM": np.minimum,
    "GREATER_EQUAL": np.greater_equal,
    "GREATER": np.greater,
    "LESS_EQUAL": np.less_equal,
    "LESS": np.less,
    "EQUAL": np.equal,
    "LOGICAL_NOT": np.logical_not,
    "SELECT": np.where,
    "SELECT_V2": np.where,
}


_FOLDABLE = (*_ELEMENTWISE, "TRANSPOSE", "RESHAPE", "CAST", "DEQUANTIZE", "MEAN")


def is_computed_from_constants(graph: Graph, tensor: Tensor) -> bool:
    """Whether the value is known before the model runs."""
    seen = {tensor}
    waiting = [(tensor, 0)]
    while waiting:
        tensor, depth = waiting.pop()
        if tensor.is_constant:
            if tensor.array is None:
                return False
            continue
        op = graph.producer(tensor)
        if op is None or op.name not in _FOLDABLE or depth > _DEEPEST or len(op.outputs) != 1:
            return False
        for source in op.inputs:
            if source is None:
                return False
            if source not in seen:
                seen.add(source)
                waiting.append((source, depth + 1))
    return True


def evaluate(graph: Graph, tensor: Tensor) -> Array | None:
    """The value of a tensor that is computed from constants, or None where an op's form is not known here."""
    return _evaluate(graph, tensor, {})


def _evaluate(graph: Graph, tensor: Tensor, shared: dict[Tensor, Array | None]) -> Array | None:
    """`shared` remembers what several ops read; the rest is let go, for weights can be large."""
    if tensor.is_constant:
        return tensor.array
    if tensor in shared:
        return shared[tensor]
    op, dtype = graph.producer(tensor), NUMPY_TYPES.get(tensor.type)
    if op is None or dtype is None:
        return None
    if op.name == "DEQUANTIZE" and op.input(0).type != "FLOAT16":
        result = dequantized(op.input(0))
    else:
        values = [_evaluate(graph, op.input(i), shared) for i in range(len(op.inputs))]
        result = None if any(value is None for value in values) else _apply(op, values, dtype)
        result = None if result is None else np.asarray(result).astype(dtype, copy=False)
    if len(graph.consumers(tensor)) > 1:
        shared[tensor] = result
    return result


def _apply(op: Op, values: list[Any], dtype: Any) -> Any:
    with np.errstate(all="ignore"):
        if op.name in _ELEMENTWISE:
            if fused_activation(op) != 0:
                return None
            size = int(np.prod(np.broadcast_shapes(*(v.shape for v in values)), dtype=np.float64))
            if size > max(_SMALL, *(v.size for v in values)):
                return None
            return _ELEMENTWISE[op.name](*values)
        if op.name == "TRANSPOSE":
            return np.transpose(values[0], values[1].reshape(-1))
        if op.name == "RESHAPE":
            return values[0].reshape(values[1].reshape(-1))
        if op.name in ("CAST", "DEQUANTIZE"):
            return values[0].astype(dtype)
        if op.name == "MEAN":
            axes = tuple(int(axis) for axis in values[1].reshape(-1))
            return values[0].mean(axis=axes, keepdims=bool(op.options.keep_dims), dtype=dtype)
    return None
