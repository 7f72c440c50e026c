"""What the int8 passes share: quantization parameters and the arithmetic of QUANTIZE."""

from __future__ import annotations

from typing import Any

import numpy as np

from litebnn.flatbuffer import schema
from litebnn.graph import Array, Graph, Op, Tensor, constant
from litebnn.rewriting.build import builtin

INT8_MIN, INT8_MAX = -128, 127
INT8_ONE = 1e-3  # how far from 1 the int8 value nearest to 1 may be


def parameters(scale: Any, zero_point: Any = 0, axis: int = 0) -> Any:
    """A schema.QuantizationParametersT with one scale and zero point, or one for each channel along `axis`."""
    q = schema.QuantizationParametersT()
    q.scale = np.atleast_1d(np.asarray(scale, np.float32))
    q.zeroPoint = np.broadcast_to(np.asarray(zero_point, np.int64), q.scale.shape).copy()
    q.quantizedDimension = axis
    return q


def parameters_of_range(low: float, high: float) -> Any:
    """int8 parameters that cover [low, high] and zero."""
    low, high = min(low, 0.0), max(high, 0.0)
    scale = max((high - low) / (INT8_MAX - INT8_MIN), float(np.finfo(np.float32).tiny))
    zero_point = int(np.clip(round(INT8_MIN - low / scale), INT8_MIN, INT8_MAX))
    return parameters(scale, zero_point)


def round_half_away(values: Array) -> Array:
    rounded: Array = np.sign(values) * np.floor(np.abs(values) + 0.5)
    return rounded


def quantized(values: Array, scale: Any, zero_point: Any) -> Array:
    """float -> int8, as QUANTIZE does."""
    levels = round_half_away(values.astype(np.float64) / scale) + zero_point
    clipped: Array = np.clip(levels, INT8_MIN, INT8_MAX).astype(np.int8)
    return clipped


def dequantized(tensor: Tensor) -> Array | None:
    """float32 values of a quantized constant, with one or several scales."""
    array, q = tensor.array, tensor.quantization
    if array is None or not tensor.is_quantized or array.dtype.kind not in "iu":
        return None
    scale = np.asarray(q.scale, np.float64)
    zero = (
        np.zeros(scale.shape) if q.zeroPoint is None or len(q.zeroPoint) == 0 else np.asarray(q.zeroPoint, np.float64)
    )
    if scale.size > 1:
        if not 0 <= q.quantizedDimension < array.ndim or array.shape[q.quantizedDimension] != scale.size:
            return None
        shape = [1] * array.ndim
        shape[q.quantizedDimension] = scale.size
        scale, zero = scale.reshape(shape), zero.reshape(shape)
    return ((array.astype(np.float64) - zero) * scale).astype(np.float32)


def is_int8(tensor: Tensor | None) -> bool:
    return tensor is not None and tensor.type == "INT8" and tensor.per_tensor_quantization is not None


def same_parameters(left: Tensor, right: Tensor) -> bool:
    return left.type == right.type and left.per_tensor_quantization == right.per_tensor_quantization is not None


def int8_source(graph: Graph, tensor: Tensor | None) -> Tensor | None:
    """The int8 tensor that `tensor` is the DEQUANTIZE of."""
    op = graph.producer(tensor)
    return op.input(0) if op is not None and op.name == "DEQUANTIZE" and is_int8(op.input(0)) else None


def int8_results(graph: Graph, tensor: Tensor) -> list[Op]:
    """The QUANTIZE ops that read `tensor`, where only such with the same int8 result do."""
    if graph.is_output(tensor):
        return []
    consumers = graph.consumers(tensor)
    if not consumers or any(c.name != "QUANTIZE" or not is_int8(c.output) for c in consumers):
        return []
    return consumers if all(same_parameters(c.output, consumers[0].output) for c in consumers) else []


def take_results(graph: Graph, op: Op, quantizers: list[Op]) -> None:
    """`op`, which writes the first quantizer's output by now, stands for all of them."""
    result = quantizers[0].output
    for quantizer in quantizers:
        graph.redirect(quantizer.output, result)
        graph.remove(quantizer)
    graph.set_output(op, result)


def quantize_op(source: Tensor, result: Tensor) -> Op:
    return Op(builtin("QUANTIZE"), [source], [result], schema.QuantizeOptionsT())


def dequantize_op(source: Tensor, result: Tensor) -> Op:
    return Op(builtin("DEQUANTIZE", 2), [source], [result], schema.DequantizeOptionsT())


def int8_constant(name: str, values: Array, scale: Any, zero_point: Any = 0, axis: int = 0) -> Tensor:
    """An int8 constant of float values."""
    shape = [1] * values.ndim
    per_axis = np.atleast_1d(np.asarray(scale, np.float64))
    if per_axis.size > 1:
        shape[axis] = per_axis.size
    divisor = per_axis.reshape(shape) if values.ndim else per_axis.reshape(())
    tensor = constant(name, quantized(values, divisor, zero_point))
    tensor.quantization = parameters(scale, zero_point, axis)
    return tensor
