"""New ops and constants of quantized graphs."""

from __future__ import annotations

from typing import Any

import numpy as np

from litebnn.analysis.grids import along_axis, parameters, quantized
from litebnn.graph import (
    Array,
    Graph,
    Op,
    Tensor,
    builtin_op,
    constant,
)


def take_results(graph: Graph, op: Op, quantizers: list[Op]) -> None:
    """Replaces all quantizers by `op`, which already writes the first quantizer's output."""
    result = quantizers[0].output
    for quantizer in quantizers:
        graph.redirect(quantizer.output, result)
        graph.remove(quantizer)
    graph.set_output(op, result)


def quantize_op(source: Tensor, result: Tensor) -> Op:
    return builtin_op("QUANTIZE", [source], result)


def dequantize_op(source: Tensor, result: Tensor) -> Op:
    return builtin_op("DEQUANTIZE", [source], result, version=2)


def int8_constant(name: str, values: Array, scale: Any, zero_point: Any = 0, axis: int = 0) -> Tensor:
    """An int8 constant of float values."""
    divisor = along_axis(np.atleast_1d(np.asarray(scale, np.float64)), values.ndim, axis)
    tensor = constant(name, quantized(values, divisor, zero_point).reshape(values.shape))
    tensor.quantization = parameters(scale, zero_point, axis)
    return tensor
