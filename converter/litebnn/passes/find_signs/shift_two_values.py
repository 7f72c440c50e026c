"""A layer of two values, such as 0 and 1 from a boolean -> the layer of a sign, with other weights and bias.

Both values are s · scale + shift for a sign s. A filter w of the values is the filter w · scale of the sign, and the
bias grows by shift · sum(w). Padding is translated too: for 0 and 1, a zero is the sign's -1, or +1 if it is flipped.

A quantized sign takes two such values, because grids seldom represent both 1 and -1. Its layer becomes a float one
followed by a QUANTIZE, which the int8 passes fuse into the binary op.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from litebnn.contract import Activation, Padding
from litebnn.graph import Array, Graph, Negated, Op, OpCode, Tensor, builtin_op, constant, then
from litebnn.rewriting.build import as_float, derived, equal_op, like, output_of
from litebnn.rewriting.each import each
from litebnn.rewriting.int8 import is_quantized, quantize_op, step_of
from litebnn.rewriting.notes import Notes
from litebnn.rewriting.padding import PADS, constant_padding, layer_padding, pad_with
from litebnn.rewriting.reasons import why_no_sign
from litebnn.rewriting.signs import (
    PathToLayer,
    ShiftedSign,
    TwoValues,
    find_path_to_layer,
    shifted_sign,
    why_no_shifted_sign,
)
from litebnn.rewriting.signs.shifted import PADDING, ROUNDING
from litebnn.rewriting.weights import (
    binary_weights,
    clamps_no_more,
    layer_bias,
    layer_weights,
    not_float,
    product_to_dense,
    why_not_binary,
)


@each("BATCH_MATMUL", "CONV_2D", "FULLY_CONNECTED")
def shift_two_values(graph: Graph, op: Op, notes: Notes) -> bool:
    if op.name == "BATCH_MATMUL":
        return op.output.type == "FLOAT32" and _dense_first(graph, op, notes)
    if op.output.type != "FLOAT32" and not is_quantized(op.output):
        return notes.left_alone(op, f"its output is {op.output.type}")
    path = find_path_to_layer(graph, op)
    if path is None:
        is_float = op.output.type == "FLOAT32"
        return False if is_float else notes.left_alone(op, why_no_sign(graph, op.input(0)))
    weights = layer_weights(graph, op)
    if weights is None or weights.ndim < 2:
        return notes.left_alone(op, not_float(op.input(1)))
    parts = why_not_binary(op, weights) or binary_weights(weights)
    if isinstance(parts, str):
        return notes.left_alone(op, parts)
    bias = layer_bias(graph, op, weights.shape[0])
    if bias is None:
        return notes.left_alone(op, f'its bias "{op.input(2).name}" is no constant, or none of its grid')
    return _rewrite(graph, op, path, weights, bias, notes)


def _dense_first(graph: Graph, product: Op, notes: Notes) -> bool:
    """Replaces a matrix product, which has no bias, by the equivalent dense layer."""
    path = find_path_to_layer(graph, product)
    if path is None:
        return False
    if shifted_sign(path) is None:
        return notes.left_alone(product, why_no_shifted_sign(path))
    return product_to_dense(graph, product, notes)


def _rewrite(graph: Graph, layer: Op, path: PathToLayer, weights: Array, bias: Array, notes: Notes) -> bool:
    shifted = shifted_sign(path, rather_falling=_falls(graph, path.first, layer))
    amounts = layer_padding(layer)
    if shifted is None:
        return notes.left_alone(layer, why_no_shifted_sign(path))
    zero = shifted.of(0.0)
    if amounts is None and zero:
        two = f"its input takes {path.low:g} and {path.high:g}"
        return notes.left_alone(layer, f"{two}, and how SAME pads it depends on a size that is not known")
    tensor = _sign_at_layer(graph, layer, path, shifted)
    if zero and amounts is not None and amounts != ((0, 0), (0, 0)):
        tensor = pad_with(graph, tensor, np.asarray([(0, 0), *amounts, (0, 0)]), zero, before=layer)
        layer.options.padding = int(Padding.VALID)
    sums = weights.reshape(weights.shape[0], -1).sum(axis=1, dtype=np.float64)
    name = layer.input(1).name
    inputs = [
        tensor,
        constant(name, (weights * shifted.scale).astype(np.float32)),
        constant(derived(name, "/bias"), (bias + shifted.shift * sums).astype(np.float32)),
    ]
    if layer.output.type == "FLOAT32":
        notes.became(layer, graph.replace(layer, Op(layer.code, [*inputs], layer.outputs, layer.options)))
        return True
    if clamps_no_more(layer):
        layer.options.fused_activation_function = int(Activation.NONE)
    result = like(layer.output, derived(layer.output.name, "/float"), type="FLOAT32")
    notes.became(layer, graph.insert(Op(OpCode(layer.name), [*inputs], [result], layer.options), before=layer))
    graph.replace(layer, quantize_op(result, layer.output))
    return True


def _falls(graph: Graph, values: TwoValues, before: Op) -> bool:
    """True if +1 should stand for the lower value.

    The form that another layer reads already is preferred, such as another phase of a transposed convolution. Otherwise
    the choice is the one that LceQuantize computes directly: x >= 0 of an int8 x, and x < 0 of a boolean.
    """
    source, decides = values.source, graph.producer(values.source)
    made = [equal_op(graph, _select(source, falls, values), before=before) for falls in (False, True)]
    if source.type == "BOOL" and made.count(None) == 1:
        return made[0] is None
    return (values.high < values.low) != (decides is not None and decides.name == "LESS")


def _sign_at_layer(graph: Graph, layer: Op, path: PathToLayer, shifted: ShiftedSign) -> Tensor:
    """The sign that a layer reads instead of two values."""
    signs = {tensor: _sign(graph, values, shifted, before=layer) for tensor, values in path.sources.items()}
    for op in path.ops:
        signs.update(_copied(graph, op, signs, shifted, before=layer))
    return signs[layer.input(0)]


def _sign(graph: Graph, values: TwoValues, shifted: ShiftedSign, *, before: Op) -> Tensor:
    """The sign of the deciding tensor, in the given form; an existing sign is returned unchanged."""
    source = values.source
    if values.is_sign:
        return source
    if source.type != "BOOL":
        source = _compared(graph, source, values.threshold, before=before)
    return output_of(graph, _select(source, shifted.scale < 0, values), before=before)


def _select(condition: Tensor, falls: bool, values: TwoValues) -> Op:
    """The op that selects 1 and -1 by the condition; 1 stands for the higher value, or for the lower one if `falls`."""
    picked = (1.0, -1.0) if (values.high > values.low) != falls else (-1.0, 1.0)
    name = derived(condition.name, "/sign" if picked[0] == 1 else "/opposite")
    numbers = (constant(f"{name}/{value:g}", np.asarray(value, np.float32)) for value in picked)
    sign = like(condition, name, type="FLOAT32", dims=values.dims)
    sign.origin = then(condition) if picked[0] == 1 else then(condition, Negated("1"))
    return builtin_op("SELECT_V2", [condition, *numbers], sign)


def _compared(graph: Graph, x: Tensor, threshold: float, *, before: Op) -> Tensor:
    """Inserts the comparison of x with a threshold, which is moved down half a step if x is quantized."""
    below = threshold - step_of(x) / 2 if threshold else threshold
    level = constant(derived(x.name, "/threshold"), np.asarray(below, np.float32))
    x = as_float(graph, x, before=before)
    condition = like(x, derived(x.name, "/condition"), type="BOOL")
    return output_of(graph, builtin_op("GREATER_EQUAL", [x, level], condition), before=before)


def _copied(
    graph: Graph, op: Op, signs: Mapping[Tensor, Tensor], shifted: ShiftedSign, *, before: Op
) -> dict[Tensor, Tensor]:
    """Applies an op on the two values to the signs instead, without a grid; maps its outputs to the new ones."""
    inputs = [part if part is None else signs.get(part, part) for part in op.inputs]
    padding = constant_padding(op) if op.name in PADDING else None
    if padding is not None and np.any(padding.amounts):
        inputs[0] = pad_with(graph, signs[op.input(0)], padding.amounts, shifted.of(padding.value), before=before)
        inputs[-1] = constant(derived(op.output.name, "/no_padding"), np.zeros_like(op.input(len(op.inputs) - 1).array))
    if op.name in (*PADS, *ROUNDING):
        assert inputs[0] is not None
        return {op.output: inputs[0]}
    outputs = [like(output, derived(output.name, "/of_sign"), type="FLOAT32") for output in op.outputs]
    graph.insert(Op(op.code, inputs, outputs, op.options), before=before)
    return dict(zip(op.outputs, outputs, strict=True))
