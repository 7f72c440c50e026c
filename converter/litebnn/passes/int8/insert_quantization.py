"""Puts a QUANTIZE and a DEQUANTIZE behind every float activation whose range is known."""

from __future__ import annotations

from typing import Any, TypeAlias

from litebnn.contract import LCE_BCONV_2D, LCE_DEQUANTIZE, LCE_QUANTIZE
from litebnn.graph import Graph, Model, Tensor, facts
from litebnn.rewriting.build import like
from litebnn.rewriting.int8 import dequantize_op, parameters, parameters_of_range, quantize_op
from litebnn.rewriting.interface import replace_interface

# In a tensor that only signs read, values near zero are all that counts: they get so much of the int8 grid, and larger
# ones saturate.
_SIGN_ONLY_ZOOM = 16

Range: TypeAlias = tuple[float, float]
Ranges: TypeAlias = dict[Tensor, Range]


def activations(graph: Graph) -> list[Tensor]:
    """Float inputs, and the float results of ops that can write int8, in order of execution."""
    computed = [
        op.output for op in graph.ops if facts(op).int8 is not None or op.name in (LCE_BCONV_2D, LCE_DEQUANTIZE)
    ]
    return [tensor for tensor in (*graph.inputs, *computed) if tensor.type == "FLOAT32"]


def insert_quantization(model: Model, ranges: Ranges, input_type: str) -> None:
    """Quantizes the activations that are not quantized already.

    Args:
        model: is changed in place.
        ranges: the (min, max) of tensors; those that it does not hold stay float.
        input_type: what the inputs are going to be, "float32" or "int8"; a float input that only signs read stays so.
    """
    for graph in model.graphs:
        fixed: dict[Tensor, Any] = {}
        for tensor in activations(graph):
            if any(reader.name == "QUANTIZE" for reader in graph.consumers(tensor)):
                continue
            limits = ranges.get(tensor)
            if limits is not None and _only_signs_read(graph, tensor):
                if tensor not in graph.inputs:
                    limits = limits[0] / _SIGN_ONLY_ZOOM, limits[1] / _SIGN_ONLY_ZOOM
                elif input_type == "float32":
                    continue
            quantization = _parameters(graph, tensor, fixed, limits)
            if quantization is not None:
                fixed[tensor] = quantization
        for tensor, quantization in fixed.items():
            _insert(model, graph, tensor, quantization)


def _only_signs_read(graph: Graph, tensor: Tensor) -> bool:
    readers = graph.consumers(tensor)
    return bool(readers) and tensor not in graph.outputs and all(reader.name == LCE_QUANTIZE for reader in readers)


def _parameters(graph: Graph, tensor: Tensor, known: dict[Tensor, Any], limits: Range | None) -> Any:
    op = graph.producer(tensor)
    rule = None if op is None else facts(op).int8
    if op is not None and rule is not None:
        if rule.result is not None:
            return parameters(*rule.result)
        if rule.same_parameters and op.name != "CONCATENATION" and op.inputs[0] in known:
            return known[op.input(0)]
    return None if limits is None else parameters_of_range(*limits)


def _insert(model: Model, graph: Graph, tensor: Tensor, quantization: Any) -> None:
    levels = like(tensor, tensor.name + "/int8", type="INT8")
    levels.quantization = quantization
    back = like(tensor, tensor.name + "/dequantized")
    graph.redirect(tensor, back)
    if tensor in graph.outputs and tensor not in graph.inputs:
        replace_interface(model, graph, "outputs", tensor, back)
    producer = graph.producer(tensor)
    first = graph.ops[0] if producer is None and graph.ops else None
    quantize = graph.insert(quantize_op(tensor, levels), before=first, after=producer)
    graph.insert(dequantize_op(levels, back), after=quantize)
