"""Replaces float ops between DEQUANTIZE and QUANTIZE by the same ops in int8."""

from __future__ import annotations

import copy
import math
from typing import cast

import numpy as np

from litebnn.analysis.match import floats
from litebnn.analysis.quantization import (
    bias_scale,
    dequantized,
    int8_results,
    int8_source,
    parameters,
    parameters_of_range,
    same_parameters,
    symmetric_scale,
    trained_weights,
    undequantized,
    without_fine_scales,
)
from litebnn.contract import Padding
from litebnn.graph import Array, Graph, Int8, Op, OpCode, Tensor, builtin_op, constant, derived, facts, like
from litebnn.rules.build.int8 import dequantize_op, int8_constant, quantize_op
from litebnn.rules.build.notes import Notes, each
from litebnn.rules.build.ops import reshape_op, take_results

# The axis of the scales of weights that int8 layers of a kind read with a single scale only.
_ONE_SCALE = -1


@each()
def lower_to_int8(graph: Graph, op: Op, notes: Notes) -> bool:
    rule = facts(op).int8
    if rule is None or op.output.type != "FLOAT32":
        return False
    if _lower(graph, op, rule, notes) or _move_before_dequantize(graph, op, rule, notes):
        return True
    reason = _why_float(graph, op)
    return reason is not None and notes.left_alone(op, reason)


def _why_float(graph: Graph, op: Op) -> str | None:
    """The reason why a layer whose weights were quantized in training stays float; None for other ops."""
    stored = undequantized(graph, op.input(1)) if facts(op).layer else None
    if stored is None or stored is op.input(1) or stored.type != "INT8":
        return None
    if trained_weights(graph, op.input(1)) is None:
        return "it stays float, for its int8 weights have a zero point"
    reads, writes = int8_source(graph, op.inputs[facts(op).data]) is not None, bool(int8_results(graph, op.output))
    sides = [side for side, is_quantized in (("input", reads), ("output", writes)) if not is_quantized]
    if not sides:
        return None
    return f"it stays float, for its {' and '.join(sides)} {'have' if len(sides) > 1 else 'has'} no fake quantization"


def _lower(graph: Graph, op: Op, rule: Int8, notes: Notes) -> bool:
    quantizers = int8_results(graph, op.output)
    if not quantizers:
        return False
    result = quantizers[0].output
    inputs = _int8_inputs(graph, op, rule, notes)
    if inputs is None:
        return False
    if rule.same_parameters:
        inputs = [_requantized(graph, t, result, op) if t is not None and t.type == "INT8" else t for t in inputs]
    lowered = _int8_op(op, rule, inputs, op.output)
    graph.replace(op, lowered)
    notes.became(op, lowered)
    if rule.result is None or _has(result, rule.result):
        take_results(graph, lowered, quantizers)
    else:
        _write_and_requantize(graph, lowered, rule.result, quantizers)
    if rule.weights_axis == _ONE_SCALE and _scales(lowered.input(1)) > 1:
        _become_pointwise_conv(graph, lowered, notes)
    return True


def _scales(weights: Tensor) -> int:
    return 1 if weights.quantization is None else weights.quantization.scale.size


def _become_pointwise_conv(graph: Graph, op: Op, notes: Notes) -> None:
    """Replaces an int8 dense layer whose weights have several scales by a convolution between two reshapes.

    All runtimes use every scale of a convolution. Older ones use only the first scale of a FULLY_CONNECTED.
    """
    x, weights, bias, name = op.input(0), op.input(1), op.optional(2), op.output.name
    q, levels, rows = weights.quantization, weights.array, op.output.dims[:-1]
    assert q is not None
    assert levels is not None
    batch = -1 if min(rows, default=1) < 0 else math.prod(rows)
    kernel = constant(weights.name, levels[:, None, None], parameters(q.scale))
    if bias is None:
        scale = bias_scale(x, kernel, (len(levels),))
        bias = constant(derived(name, "/bias"), np.zeros(len(levels), np.int32), parameters(scale))
    image = like(x, derived(name, "/rows"), dims=(batch, 1, 1, levels.shape[1]))
    pixels = like(op.output, derived(name, "/pixels"), dims=(batch, 1, 1, len(levels)))
    conv = builtin_op("CONV_2D", [image, kernel, bias], pixels, version=3, padding=Padding.VALID)
    conv.options.fused_activation_function = op.options.fused_activation_function
    graph.insert(reshape_op(x, image), before=op)
    graph.insert(conv, before=op)
    graph.replace(op, reshape_op(pixels, op.output))
    notes.became(op, conv)


def _write_and_requantize(graph: Graph, op: Op, grid: tuple[float, int], quantizers: list[Op]) -> None:
    """Makes an op write int8 with the scale and zero point `grid`, because runtimes support no others for the op's
    output. The QUANTIZE ops after the op read the new output.
    """
    fixed = like(op.output, derived(op.output.name, "/int8"), type="INT8", quantization=parameters(*grid))
    for quantizer in quantizers:
        graph.set_input(quantizer, 0, fixed)
    graph.set_output(op, fixed)


def _move_before_dequantize(graph: Graph, op: Op, rule: Int8, notes: Notes) -> bool:
    """Rewrites op(DEQUANTIZE(x)) to DEQUANTIZE(op(x)). The results are equal for an op that only moves values."""
    source = int8_source(graph, op.inputs[0]) if facts(op).moves else None
    if source is None:
        return False
    moved = like(op.output, derived(op.output.name, "/int8"), type="INT8", quantization=source.quantization)
    graph.insert(_int8_op(op, rule, [source, *op.inputs[1:]], moved), before=op)
    graph.replace(op, dequantize_op(moved, op.output))
    return True


def _int8_op(op: Op, rule: Int8, inputs: list[Tensor | None], output: Tensor) -> Op:
    return Op(OpCode(op.name, "", rule.version), inputs, [output], copy.copy(op.options))


def _has(tensor: Tensor, expected: tuple[float, int]) -> bool:
    scaled = tensor.per_tensor_quantization
    return scaled is not None and abs(scaled[0] / expected[0] - 1) < 1e-5 and scaled[1] == expected[1]


def _requantized(graph: Graph, tensor: Tensor, goal: Tensor, before: Op) -> Tensor:
    """Returns the tensor requantized to the scale and zero point of the tensor `goal`."""
    if same_parameters(tensor, goal):
        return tensor
    changed = like(tensor, derived(tensor.name, "/requantized"), quantization=goal.quantization)
    graph.insert(quantize_op(tensor, changed), before=before)
    return changed


def _int8_inputs(graph: Graph, op: Op, rule: Int8, notes: Notes) -> list[Tensor | None] | None:
    inputs: list[Tensor | None] = []
    weights, bias = facts(op).constants or (None, None)
    for index, tensor in enumerate(op.inputs):
        if tensor is None or tensor.type in ("INT32", "INT64", "BOOL"):
            inputs.append(tensor)
        elif rule.weights_axis is not None and index == weights:
            inputs.append(_weights(graph, tensor, rule.weights_axis))
        elif index == bias:
            inputs.append(_bias(op, tensor, inputs[facts(op).data], inputs[1], notes))
        elif (source := int8_source(graph, tensor)) is not None:
            inputs.append(source)
        else:
            inputs.append(_operand(tensor))
        if tensor is not None and inputs[-1] is None:
            return None
    activations = [t for t in inputs if t is not None and t.type == "INT8" and not t.is_constant]
    return inputs if activations else None


def _operand(tensor: Tensor) -> Tensor | None:
    """Converts a constant float operand, such as the second input of an ADD, to int8."""
    values = floats(tensor)
    if values is None or not np.all(np.isfinite(values)):
        return None
    q = parameters_of_range(float(values.min(initial=0.0)), float(values.max(initial=0.0)))
    return int8_constant(tensor.name, values, q.scale[0], int(q.zero_point[0]))


def _weights(graph: Graph, tensor: Tensor, axis: int) -> Tensor | None:
    """Returns weights as symmetric int8. If the weights were already quantized in training, returns the integers of
    this quantization.
    """
    if undequantized(graph, tensor).type == "INT8":
        trained = trained_weights(graph, tensor)
        q = None if trained is None else trained.quantization
        if trained is None or q is None or (q.scale.size > 1 and q.axis != max(axis, 0)):
            return None
        coarser = without_fine_scales(trained)
        if coarser is None:
            return trained
        return int8_constant(trained.name, cast("Array", dequantized(trained)), coarser, 0, q.axis)
    values = floats(tensor)
    if values is None or not np.all(np.isfinite(values)):
        return None
    scale = symmetric_scale(values, axis)
    return int8_constant(tensor.name, values, scale, 0, max(axis, 0))


def _bias(op: Op, tensor: Tensor, source: Tensor | None, weights: Tensor | None, notes: Notes) -> Tensor | None:
    values, scale = floats(tensor), bias_scale(source, weights, tensor.shape)
    if values is None or scale is None:
        return None
    counts = np.round(values.astype(np.float64) / scale)
    if np.abs(counts).max(initial=0.0) > np.iinfo(np.int32).max:
        notes.warn(op, "it stays float, for its bias does not fit into 32 bits")
        return None
    return constant(tensor.name, counts.astype(np.int32), parameters(scale))
