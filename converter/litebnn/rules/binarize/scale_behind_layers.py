"""A scale that all inputs of a sum share moves from before a layer to behind it.

XNOR-Net multiplies signs by the mean magnitude of their position or sample, which is computed when the model runs. If
all terms of a layer's sum have the same scale k, the layer can read the signs themselves: W · (s · k) = (W · s) · k.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np

from litebnn.analysis.few_values import few_values
from litebnn.analysis.layouts import gathered_axis
from litebnn.analysis.match import broadcast_factor, fused_activation, transpose_order, uniform, wide_dims
from litebnn.analysis.padding import PADS, constant_padding, layer_padding
from litebnn.analysis.signs import find_scaled_step
from litebnn.analysis.transfers import Values
from litebnn.analysis.walks import MOST_OPS
from litebnn.analysis.weights import BINARY_LAYERS, binary_parts
from litebnn.contract import Activation
from litebnn.graph import Array, Graph, Op, Tensor, builtin_op, constant, derived, facts, like
from litebnn.rules.build.notes import Notes, each
from litebnn.rules.build.ops import compared, copy_of, reshape_op, select_op
from litebnn.rules.build.signs import holds_signs

Dims: TypeAlias = tuple[int, ...]
# The ops that move values, in addition to reshapes.
_MOVING = (*PADS, "GATHER", "TRANSPOSE")
# Stands for an unknown size where products of sizes are compared.
_UNKNOWN = 1_000_003


@dataclass(frozen=True)
class Scale:
    """Numbers, computed when the model runs, by which few values are multiplied or divided."""

    tensor: Tensor
    # The dimensions in which the numbers are broadcast to the layer's input.
    dims: Dims
    op: str = "MUL"


@dataclass(frozen=True)
class Scaled:
    """The input of a layer: a tensor of few values, or a step function of two values, multiplied by scales."""

    source: Tensor | Values
    scales: tuple[Scale, ...] = ()
    # The ops that move the values on their way to the layer, in order of execution.
    ops: tuple[Op, ...] = ()


@each(*BINARY_LAYERS, "TRANSPOSE_CONV")
def scale_behind_layers(graph: Graph, op: Op, notes: Notes) -> bool:
    found = scaled_input(graph, op)
    if found is None:
        return False
    parts = binary_parts(graph, op, assume_nonzero=notes.options["assume_nonzero"])
    if isinstance(parts, str):
        return notes.left_alone(op, parts)
    source = found.source
    if isinstance(source, Values):
        source = _selected(graph, source, op)
    for move in found.ops:
        source = copy_of(graph, move, source, "/unscaled", before=op)
    graph.set_input(op, facts(op).data, source)
    _, *biases = facts(op).constants
    has_bias = bool(np.any(parts.bias))
    if has_bias:
        name = derived(op.input(1).name, "/no_bias")
        graph.set_input(op, biases[0], constant(name, np.zeros_like(parts.bias)))
    _scale(graph, op, found.scales, parts.bias if has_bias else None)
    return True


def _scale(graph: Graph, layer: Op, scales: tuple[Scale, ...], bias: Array | None) -> None:
    """Inserts the scales, the bias and the activation of a layer behind it."""
    result, last = layer.output, layer
    activation = fused_activation(layer) or Activation.NONE
    if activation:
        layer.options.fused_activation_function = Activation.NONE
    operands = [(scale.op, _behind(graph, layer, scale)) for scale in scales]
    if bias is not None:
        operands.append(("ADD", constant(derived(result.name, "/bias"), bias)))
    for index, (name, operand) in enumerate(operands):
        before = like(result, derived(result.name, f"/unscaled{index or ''}"))
        graph.set_output(last, before)
        last = graph.insert(builtin_op(name, [before, operand], result), after=last)
    last.options.fused_activation_function = activation


def _behind(graph: Graph, layer: Op, scale: Scale) -> Tensor:
    """Returns the numbers by which the output of a layer is multiplied."""
    tensor, dims = scale.tensor, scale.dims
    if len(layer.output.dims) != len(dims):
        rows = _in_shape(dims[:-1], layer.input(facts(layer).data).dims[:-1], layer.output.dims[:-1])
        assert rows is not None
        dims = (*rows, 1)
    if tensor.dims != dims[len(dims) - len(tensor.dims) :]:
        shaped = like(tensor, derived(layer.output.name, "/scale"), dims=dims)
        tensor = graph.insert(reshape_op(tensor, shaped), before=layer).output
    strides = [1] if layer.name != "CONV_2D" else [layer.options.stride_h, layer.options.stride_w]
    if max(strides) == 1 or dims[1:3] == (1, 1):
        return tensor
    sizes = (size if size < 0 else -(-size // stride) for size, stride in zip(dims[1:3], strides, strict=True))
    taken = like(tensor, derived(layer.output.name, "/strided"), dims=(dims[0], *sizes, 1))
    bounds = [np.zeros(4), np.zeros(4), np.asarray([1, *strides, 1])]
    names = ("/begin", "/end", "/strides")
    inputs = [constant(derived(taken.name, name), b.astype(np.int32)) for name, b in zip(names, bounds, strict=True)]
    slices = builtin_op("STRIDED_SLICE", [tensor, *inputs], taken, begin_mask=15, end_mask=15)
    return graph.insert(slices, before=layer).output


def _selected(graph: Graph, step: Values, before: Op) -> Tensor:
    assert step.x is not None
    condition = compared(graph, step.x, float(step.edges[0]), before.output.name, before=before)
    values, (low, high) = like(step.x, derived(before.output.name, "/unscaled_input")), step.values
    return graph.insert(select_op(condition, high, low, values), before=before).output


def scaled_input(graph: Graph, layer: Op) -> Scaled | None:
    """Returns the input of a layer as few values with scales that can move behind the layer; None if there are none."""
    data = layer.input(facts(layer).data)
    found = _scaled(graph, data) if layer.output.type == data.type == "FLOAT32" else None
    if found is None or not found.scales or not all(_is_shared(layer, scale) for scale in found.scales):
        return None
    return found


def _is_shared(layer: Op, scale: Scale) -> bool:
    """True if all terms of each of a layer's sums have the same scale."""
    dims, data = scale.dims, layer.input(facts(layer).data)
    if dims[-1] != 1:
        return False
    if layer.name == "TRANSPOSE_CONV":
        return dims[1:3] == (1, 1)
    if layer.name == "CONV_2D":
        taps, amounts = layer.input(1).shape[1:3], layer_padding(layer)
        of_axes = zip(dims[1:3], taps, amounts or ((1, 1),) * 2, strict=True)
        return all(size == 1 or (count == 1 and around == (0, 0)) for size, count, around in of_axes)
    rows, out = data.dims[:-1], layer.output.dims[:-1]
    return len(rows) == len(out) or _in_shape(dims[:-1], rows, out) is not None


def _scaled(graph: Graph, tensor: Tensor) -> Scaled | None:
    """Follows a tensor upstream to few values, through scales and ops that move values."""
    scales: list[Scale] = []
    ops: list[Op] = []
    while len(ops) + len(scales) < MOST_OPS:
        if holds_signs(graph, tensor) or few_values(graph, tensor) is not None:
            return Scaled(tensor, tuple(scales), tuple(reversed(ops)))
        op = graph.producer(tensor)
        if op is None:
            return None
        factor = broadcast_factor(op)
        if factor is None and (step := find_scaled_step(graph, tensor)) is not None:
            function, factors = step
            scale = _moved(Scale(factors, wide_dims(factors.dims, len(tensor.dims))), ops)
            return None if scale is None else Scaled(function, (*scales, scale), tuple(reversed(ops)))
        if factor is not None:
            scale = _moved(Scale(op.input(factor), wide_dims(op.input(factor).dims, len(op.output.dims)), op.name), ops)
            if scale is None:
                return None
            scales.append(scale)
            tensor = op.input(1 - factor)
        elif op.name in _MOVING or facts(op).reshapes or _multiplies(op):
            ops.append(op)
            tensor = op.input(0)
        else:
            return None
    return None


def _multiplies(op: Op) -> bool:
    """True if an op multiplies its first input by one constant number."""
    return op.name in ("MUL", "DIV") and fused_activation(op) == 0 and uniform(op.inputs[1]) is not None


def _moved(scale: Scale, ops: list[Op]) -> Scale | None:
    """Returns a scale after ops, the last one first, have moved it; None if one of them mixes it with other values."""
    for op in reversed(ops):
        dims = _passed(scale.dims, op)
        if dims is None:
            return None
        scale = replace(scale, dims=dims)
    return scale


def _passed(dims: Dims, op: Op) -> Dims | None:
    if op.name in PADS:
        padding = constant_padding(op)
        if padding is None or padding.value != 0:
            return None
        return dims if all(size == 1 or not any(own) for size, own in zip(dims, padding.amounts, strict=True)) else None
    if op.name == "GATHER":
        axis = gathered_axis(op)
        return dims if axis is not None and dims[axis] == 1 else None
    if op.name == "TRANSPOSE":
        order = transpose_order(op)
        wide = [] if order is None else [axis for axis in order if dims[axis] != 1]
        return None if order is None or wide != sorted(wide) else tuple(dims[axis] for axis in order)
    return _in_shape(dims, op.input(0).dims, op.output.dims) if facts(op).reshapes else dims


def _in_shape(dims: Dims, before: Dims, after: Dims) -> Dims | None:
    """Returns the dimensions of a factor of a tensor after a reshape of the tensor. None if the reshape mixes axes of
    the factor with others.

    >>> _in_shape((2, 5, 1), (2, 5, 32), (10, 32))
    (10, 1)
    >>> _in_shape((2, 1, 1), (2, 5, 32), (2, 160))
    (2, 1)
    """
    sizes, goal = ([_UNKNOWN if size < 0 else size for size in shape] for shape in (before, after))
    if 0 in sizes or math.prod(sizes) != math.prod(goal):
        return None
    result: list[int] = []
    start = first = 0
    while start < len(sizes) or first < len(goal):
        end, last = min(start + 1, len(sizes)), min(first + 1, len(goal))
        while (left := math.prod(sizes[start:end])) != (right := math.prod(goal[first:last])):
            end, last = (end + 1, last) if left < right else (end, last + 1)
        own = dims[start:end]
        if own != before[start:end] and any(size != 1 for size in own):
            return None
        result += after[first:last] if any(size != 1 for size in own) else [1] * (last - first)
        start, first = end, last
    return tuple(result)
