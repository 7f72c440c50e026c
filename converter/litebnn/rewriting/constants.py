"""The values of tensors that are computed from constants."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from litebnn.graph import NUMPY_TYPES, Array, Graph, Op, Tensor
from litebnn.rewriting.int8 import dequantized
from litebnn.rewriting.match import fused_activation

# Exporters leave a handful of ops between a constant and the weights, and a damaged file any number.
_DEEPEST = 32
# A broadcast may make this many elements of fewer; a small file could ask for more than there is memory.
_SMALL = 1 << 20
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
    waiting = [tensor]
    while waiting:
        tensor = waiting.pop()
        if tensor.is_constant:
            if tensor.array is None:
                return False
            continue
        op = graph.producer(tensor)
        if op is None or op.name not in _FOLDABLE:
            return False
        for source in op.inputs:
            if source is None:
                return False
            if source not in seen:
                seen.add(source)
                waiting.append(source)
    return True


def evaluate(graph: Graph, tensor: Tensor) -> Array | None:
    """The value of a tensor that is computed from constants, or None where its ops are not known here."""
    return _evaluate(graph, tensor, {}, 0)


def _evaluate(graph: Graph, tensor: Tensor, shared: dict[Tensor, Array | None], depth: int) -> Array | None:
    """`shared` remembers what several ops read; the rest is let go, for weights can be large."""
    if tensor.is_constant:
        return tensor.array
    if tensor in shared:
        return shared[tensor]
    op, dtype = graph.producer(tensor), NUMPY_TYPES.get(tensor.type)
    if op is None or dtype is None or depth > _DEEPEST:
        return None
    if op.name == "DEQUANTIZE" and op.input(0).type != "FLOAT16":
        result = dequantized(op.input(0))
    else:
        values = [_evaluate(graph, op.input(i), shared, depth + 1) for i in range(len(op.inputs))]
        known = [value for value in values if value is not None]
        result = _apply(op, known, dtype) if len(known) == len(values) else None
    if len(graph.consumers(tensor)) > 1:
        shared[tensor] = result
    return result


def _apply(op: Op, values: list[Array], dtype: Any) -> Array | None:
    """What the op makes of the values; None where they do not fit together."""
    source, shape = values[0], op.output.shape
    result: Any = None
    with np.errstate(all="ignore"):
        if op.name in _ELEMENTWISE:
            small = math.prod(shape) <= max(_SMALL, *(v.size for v in values))
            if small and fused_activation(op) == 0 and all(_broadcasts(v.shape, shape) for v in values):
                result = _ELEMENTWISE[op.name](*values)
        elif op.name == "TRANSPOSE":
            if np.array_equal(np.sort(values[1].reshape(-1)), np.arange(source.ndim)):
                result = source.transpose(values[1].reshape(-1))
        elif op.name == "RESHAPE":
            if math.prod(shape) == source.size:
                result = source.reshape(shape)
        elif op.name == "MEAN":
            axes = {int(axis) for axis in values[1].reshape(-1)}
            if axes <= set(range(-source.ndim, source.ndim)):
                axes = {axis % source.ndim for axis in axes}
                result = source.mean(axis=tuple(axes), keepdims=bool(op.options.keep_dims), dtype=dtype)
        else:
            result = source
        return None if result is None else np.asarray(result).astype(dtype, copy=False)


def _broadcasts(shape: tuple[int, ...], goal: tuple[int, ...]) -> bool:
    sizes = zip(reversed(shape), reversed(goal), strict=False)
    return len(shape) <= len(goal) and all(size in (1, wanted) for size, wanted in sizes)
