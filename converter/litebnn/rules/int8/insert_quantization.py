"""Inserts a QUANTIZE and a DEQUANTIZE after every float activation with a known range."""

from __future__ import annotations

import math
from typing import TypeAlias

import numpy as np

from litebnn.analysis.quantizable import activations
from litebnn.analysis.quantization import INT8_MAX, Range, int8_source, parameters, parameters_of_range
from litebnn.contract import LCE_QUANTIZE
from litebnn.graph import Graph, Model, Op, Quantization, Tensor, facts, like
from litebnn.rules.build.int8 import dequantize_op, quantize_op, replace_interface
from litebnn.rules.build.notes import Notes

# If only signs read a tensor, only its values near zero matter. The tensor's scale is divided by this factor: values
# near zero become more precise, and large values saturate.
_SIGN_ONLY_ZOOM = 16
# The smallest scale of an op's output, as a share of the scale of the sums that the op computes. A smaller scale adds
# no information, and runtimes refuse it or abort.
_FINEST = 1 / 128
# The range of a sum of two tensors is widened by this factor. The ranges of binary layers are often whole numbers. The
# ratio of the scales would then be a fraction of small numbers, and many sums would lie halfway between two levels.
# Floats may round such a sum to the wrong level, so the library would compute it without floats, which is slower.
_OFF_TIES = 1.000317
# A range narrower than this number counts as zero. The products of so small scales would underflow.
_ZERO_RANGE = 1e-30
# The scale of a tensor that was zero on all samples, if no input of the op that computes the tensor has a scale. With
# this scale, int8 represents values up to about one.
_SCALE_OF_ZERO = 1 / 128

Quantizations: TypeAlias = dict[Tensor, Quantization]


def insert_quantization(graph: Graph, notes: Notes) -> bool:
    """Quantizes the activations whose range is known and that are not quantized already.

    A float input that only signs read stays float if the requested type of inputs is "float32". If a tensor was zero on
    all samples, its scale is only assumed, and the notes get a warning.
    """
    fixed: Quantizations = {}
    for tensor in activations(graph):
        if any(reader.name == "QUANTIZE" for reader in graph.consumers(tensor)) or _is_next_to_input(graph, tensor):
            continue
        limits = notes.ranges.get(tensor)
        if limits is not None and _only_signs_read(graph, tensor):
            if tensor not in graph.inputs:
                limits = limits[0] / _SIGN_ONLY_ZOOM, limits[1] / _SIGN_ONLY_ZOOM
            elif notes.options["inference_input_type"] == "float32":
                continue
        quantization = _parameters(graph, tensor, fixed, limits, notes)
        if quantization is not None:
            fixed[tensor] = quantization
    for tensor, quantization in fixed.items():
        _insert(notes.model, graph, tensor, quantization)
    return bool(fixed)


def _only_signs_read(graph: Graph, tensor: Tensor) -> bool:
    readers = graph.consumers(tensor)
    return bool(readers) and tensor not in graph.outputs and all(reader.name == LCE_QUANTIZE for reader in readers)


def _is_next_to_input(graph: Graph, tensor: Tensor) -> bool:
    """True if the op that computes the tensor only adds a number too small for any int8 scale. For example,
    subtracting a tiny number turns x >= 0 into x > 0.
    """
    op = graph.producer(tensor, "ADD", "SUB")
    if op is None:
        return False
    addends = (np.abs(t.array) for t in op.inputs if t is not None and t.array is not None)
    return any(np.any((addend > 0) & (addend <= _ZERO_RANGE)) for addend in addends)


def _parameters(
    graph: Graph, tensor: Tensor, known: Quantizations, limits: Range | None, notes: Notes
) -> Quantization | None:
    op = graph.producer(tensor)
    rule = None if op is None else facts(op).int8
    largest = step = 0.0
    if op is not None and rule is not None:
        if rule.result is not None and limits is not None:
            return parameters(*rule.result)
        if rule.same_parameters and op.name != "CONCATENATION" and op.inputs[0] in known:
            return known[op.input(0)]
        places = (facts(op).data, *facts(op).constants[:1]) if facts(op).layer else (0, 1)
        operands = (t for t in map(op.optional, places) if t is not None and t.type == "FLOAT32")
        scales = [_scale(graph, t, known) for t in operands]
        largest = max(scales, default=0.0)
        step = math.prod(scales) if rule.weights_axis is not None or op.name == "MUL" else largest
    if limits is None:
        return None
    if limits[1] - limits[0] > _ZERO_RANGE:
        widened = _OFF_TIES if op is not None and _adds_tensors(op) else 1.0
        low, high = (limit * widened for limit in limits)
        return parameters_of_range(low, high, least_scale=(step or largest) * _FINEST)
    scale = max(largest, step)
    scale = scale if scale > _ZERO_RANGE else _SCALE_OF_ZERO
    notes.warn(tensor, f"it is zero on all samples, and its int8 scale of {scale:.2g} is a guess")
    return parameters(scale)


def _adds_tensors(op: Op) -> bool:
    return op.name in ("ADD", "SUB") and not any(t is None or t.is_constant for t in op.inputs)


def _scale(graph: Graph, tensor: Tensor, known: Quantizations) -> float:
    """Returns the scale of an op's input. For a float constant, it is the scale that the constant will get. Returns
    0 if the input stays float.
    """
    source = int8_source(graph, tensor)
    grid = known.get(tensor) or (source and source.quantization)
    if grid:
        return float(grid.scale[0])
    return 0.0 if tensor.array is None else float(np.abs(tensor.array).max(initial=0.0)) / INT8_MAX


def _insert(model: Model, graph: Graph, tensor: Tensor, quantization: Quantization) -> None:
    levels = like(tensor, tensor.name + "/int8", type="INT8", quantization=quantization)
    back = like(tensor, tensor.name + "/dequantized")
    graph.redirect(tensor, back)
    if tensor in graph.outputs and tensor not in graph.inputs:
        replace_interface(model, graph, "outputs", tensor, back)
    producer = graph.producer(tensor)
    first = graph.ops[0] if producer is None and graph.ops else None
    quantize = graph.insert(quantize_op(tensor, levels), before=first, after=producer)
    graph.insert(dequantize_op(levels, back), after=quantize)
