"""In a graph that is int8 already, what works on signs goes back to float, for the binary passes to find it.

A layer whose input is QUANTIZE(sign) becomes the float layer of the sign, followed by QUANTIZE; nothing but rounding
changes, and the int8 passes take the QUANTIZE into the binary op afterwards.
"""

from __future__ import annotations

import copy

import numpy as np

from litebnn.graph import Array, Graph, Op, OpCode, Tensor, constant, facts
from litebnn.rewriting.build import derived, like
from litebnn.rewriting.each import each
from litebnn.rewriting.int8 import INT8_ONE, bias_scale, dequantized, is_int8, quantize_op
from litebnn.rewriting.match import bits_of
from litebnn.rewriting.notes import Notes
from litebnn.rewriting.weights import binary_weights


@each()
def dequantize_layers_of_signs(graph: Graph, op: Op, notes: Notes) -> bool:
    if not facts(op).on_signs or not is_int8(op.inputs[0]) or not is_int8(op.output):
        return False
    sign = _quantized_sign(graph, op.input(0))
    return sign is not None and _to_float(graph, op, sign, notes)


def _quantized_sign(graph: Graph, tensor: Tensor) -> Tensor | None:
    """The float sign that `tensor` is the int8 form of, where int8 holds ±1 well."""
    op, scaled = graph.producer(tensor), tensor.per_tensor_quantization
    if op is None or op.name != "QUANTIZE" or scaled is None or bits_of(graph, op.input(0)) is None:
        return None
    return op.input(0) if abs(min(round(1 / scaled[0]), 127 - scaled[1]) * scaled[0] - 1) < INT8_ONE else None


def _to_float(graph: Graph, op: Op, sign: Tensor, notes: Notes) -> bool:
    inputs: list[Tensor | None] = [sign]
    weights, bias = facts(op).constants or (None, None)
    for index, tensor in enumerate(op.inputs[1:], start=1):
        if tensor is None or (tensor.type in ("INT32", "INT64") and weights is None):
            inputs.append(tensor)
            continue
        values = _bias(op, tensor) if index == bias else dequantized(tensor)
        if values is None or (index == weights and isinstance(binary_weights(values), str)):
            return False
        if op.name == "PADV2":
            values = np.where(np.abs(np.abs(values) - 1) < INT8_ONE, np.sign(values), values)
        inputs.append(constant(tensor.name, values))
    result = like(op.output, derived(op.output.name, "/float"), type="FLOAT32")
    layer = Op(OpCode(op.name), inputs, [result], copy.copy(op.options))
    graph.insert(layer, before=op)
    graph.replace(op, quantize_op(result, op.output))
    notes.became(op, layer)
    return True


def _bias(op: Op, bias: Tensor) -> Array | None:
    """The values of a bias of int32 counts."""
    values, scale = bias.array, bias_scale(op.input(0), op.input(1), bias.shape)
    return None if values is None or values.dtype != np.int32 or scale is None else (values * scale).astype(np.float32)
