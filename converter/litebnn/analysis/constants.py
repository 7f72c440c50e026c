"""Computes the values of tensors that depend only on constants."""

from __future__ import annotations

import math
from collections.abc import Callable, Container, Sequence
from typing import Any

import numpy as np

from litebnn.analysis.match import fused_activation
from litebnn.analysis.quantization import NARROW_TYPES, dequantized
from litebnn.analysis.walks import ops_upstream
from litebnn.contract import ACTIVATION_RANGES
from litebnn.graph import FACTS, NUMPY_TYPES, Array, Graph, Op, Tensor

# A computed value may have more elements than the constants from which it is computed, but then at most this number.
# Without a limit, a small file with huge broadcasts could exhaust the memory.
_SMALL = 1 << 20


def _clamp(limits: tuple[float, float]) -> Callable[[Array], Array]:
    return lambda values: np.clip(values, *limits)


def _select(condition: Array, if_true: Array, if_false: Array) -> Array:
    if condition.ndim == 1 < if_true.ndim:  # SELECT's vector condition selects whole rows
        condition = condition.reshape(-1, *[1] * (if_true.ndim - 1))
    return np.where(condition, if_true, if_false)


_NAMED_AS_IN_NUMPY = """ABS ADD CEIL EQUAL EXP FLOOR GREATER GREATER_EQUAL LESS LESS_EQUAL LOGICAL_AND LOGICAL_NOT
    LOGICAL_OR MAXIMUM MINIMUM NOT_EQUAL SIGN SQRT SQUARE TANH"""
ELEMENTWISE: dict[str, Callable[..., Any]] = {
    **{name: getattr(np, name.lower()) for name in _NAMED_AS_IN_NUMPY.split()},
    **{name: _clamp(known.clamp_limits) for name, known in FACTS.items() if known.clamp_limits is not None},
    "DIV": np.divide,
    "FLOOR_DIV": lambda left, right: np.floor(np.divide(left, right, dtype=np.float64)),  # as the runtime does
    "LOGISTIC": lambda values: 1 / (1 + np.exp(-values)),
    "MUL": np.multiply,
    "NEG": np.negative,
    "POW": np.power,
    "ROUND": np.rint,
    "RSQRT": lambda values: 1 / np.sqrt(values),
    "SELECT": _select,
    "SELECT_V2": np.where,
    "SUB": np.subtract,
}
# The ops that compute each element separately. This module cannot compute the values of some of them, such as ELU.
ON_ELEMENTS = frozenset({*ELEMENTWISE, "CAST", "ELU", "HARD_SWISH", "LEAKY_RELU", "PRELU"})
REDUCTIONS: dict[str, Callable[..., Any]] = {"MEAN": np.mean, "REDUCE_MAX": np.max, "REDUCE_MIN": np.min, "SUM": np.sum}
_SHAPING: dict[str, Callable[[Op, list[Array]], Array]] = {
    **dict.fromkeys(("CAST", "DEQUANTIZE"), lambda op, values: values[0]),
    **dict.fromkeys(("EXPAND_DIMS", "RESHAPE", "SQUEEZE"), lambda op, values: values[0].reshape(op.output.shape)),
    "BROADCAST_TO": lambda op, values: np.broadcast_to(values[0], op.output.shape),
    "CONCATENATION": lambda op, values: np.concatenate(values, axis=getattr(op.options, "axis", 0)),
    "TRANSPOSE": lambda op, values: np.transpose(values[0], values[1].reshape(-1)),
}
_FOLDABLE = {*ELEMENTWISE, *REDUCTIONS, *_SHAPING}


def constants_upstream(graph: Graph, tensor: Tensor, unknown: Container[Tensor] = ()) -> set[Tensor] | None:
    """Returns the constants from which a value is computed; None if the value depends on the model's inputs.

    Args:
        unknown: tensors that are known to depend on the model's inputs. The search does not go upstream of them.
    """
    constants: set[Tensor] = set()
    seen = {tensor}
    waiting = [tensor]
    while waiting:
        tensor = waiting.pop()
        if tensor in unknown:
            return None
        if tensor.is_constant:
            plain = tensor.array is not None and tensor.array.dtype.kind in "fiub"
            if not plain and (tensor.type not in NARROW_TYPES or tensor.is_sparse):
                return None
            constants.add(tensor)
            continue
        op = graph.producer(tensor)
        if op is None or op.name not in _FOLDABLE:
            return None
        for source in op.inputs:
            # The integers of a quantized tensor are not used as values, because they stand for other numbers.
            if source is None or (op.name != "DEQUANTIZE" and (source.quantization or op.output.quantization)):
                return None
            if source not in seen:
                seen.add(source)
                waiting.append(source)
    return constants


def does_not_grow(graph: Graph, tensor: Tensor) -> bool:
    """True if a tensor takes no more bytes than the constants that it would replace. Constants that are
    also used elsewhere are not counted.
    """
    constants = constants_upstream(graph, tensor)
    if constants is None:
        return False
    ops = {*(ops_upstream(graph, tensor, lambda op: op.inputs, most=len(graph.ops)) or ())}
    for each in {tensor, *(source for op in ops for source in op.inputs if source is not None)}:
        if each in graph.pinned or (each is not tensor and not ops.issuperset(graph.consumers(each))):
            constants -= constants_upstream(graph, each) or set()
    size = math.prod(tensor.shape) * np.dtype(NUMPY_TYPES.get(tensor.type, np.float64)).itemsize
    return size <= sum(source.buffer.data.size for source in constants if source.buffer.data is not None)


def evaluate(graph: Graph, tensor: Tensor) -> Array | None:
    """Returns the value of a tensor that is computed from constants; None if this module cannot compute one of its
    ops."""
    constants = constants_upstream(graph, tensor)
    ops = None if constants is None else ops_upstream(graph, tensor, lambda op: op.inputs)
    if constants is None or ops is None:
        return None
    most = max(_SMALL, sum(math.prod(source.shape) for source in constants))
    values = {source: source.array for source in constants}
    for op in ops:
        values[op.output] = _computed(graph, op, [values[source] for source in op.inputs if source is not None], most)
        if values[op.output] is None:
            return None
        for source in op.inputs:  # weights can be large
            if source is not None and graph.sole_consumer(source) is op:
                del values[source]
    return values[tensor]


def _computed(graph: Graph, op: Op, values: Sequence[Array | None], most: int) -> Array | None:
    """Computes the output of an op from its inputs; None if this module cannot, or if the output has more than `most`
    elements."""
    tensor = op.output
    dtype, size = NUMPY_TYPES.get(tensor.type), math.prod(tensor.shape)
    if dtype is None or size > most or min(tensor.dims, default=0) < 0:
        return None
    graph.spend(size)
    if op.name == "DEQUANTIZE" and op.input(0).type != "FLOAT16":
        return dequantized(op.input(0))
    known = [value for value in values if value is not None]
    graph.spend(sum(value.size for value in known))
    return _apply(op, known, dtype) if len(known) == len(values) else None


def _apply(op: Op, values: list[Array], dtype: Any) -> Array | None:
    """Returns the op's output for these inputs. None if the inputs do not fit together, or if the output does not
    match its declared shape and type.
    """
    activation, shape = fused_activation(op), op.output.shape
    if activation is None or (op.name in ELEMENTWISE and not all(_broadcasts(op, v.shape) for v in values)):
        return None
    with np.errstate(all="ignore"):
        try:
            if op.name in ELEMENTWISE:
                result = ELEMENTWISE[op.name](*values)
            elif op.name in REDUCTIONS:
                axes = tuple(int(axis) for axis in values[1].reshape(-1))
                result = REDUCTIONS[op.name](values[0], axis=axes, keepdims=bool(op.options.keep_dims))
            else:
                result = _SHAPING[op.name](op, values)
        except ValueError:  # NumPy's error for shapes or axes that do not fit
            return None
        if activation:
            result = np.clip(result, *ACTIVATION_RANGES[activation])
        return result.astype(dtype, copy=False) if result.shape == shape else None


def _broadcasts(op: Op, shape: tuple[int, ...]) -> bool:
    """True if each axis of an operand has the output's size or 1; SELECT also allows a vector that selects rows."""
    goal = op.output.shape
    if op.name == "SELECT" and len(shape) == 1:
        return goal[:1] == shape
    sizes = zip(reversed(shape), reversed(goal), strict=False)
    return len(shape) <= len(goal) and all(size in (1, wanted) for size, wanted in sizes)
