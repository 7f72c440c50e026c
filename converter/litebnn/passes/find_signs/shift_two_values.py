"""A layer of two values that a boolean decides, 0 and 1 for one -> the layer of a sign, with other weights and bias.

Each value is s · scale + shift of a sign s, so a filter w of it is the filter w · scale of the sign, and the bias grows
by shift · sum(w). What pads the values pads the sign too: for 0 and 1, a zero is the sign's -1, or the +1 of its
opposite.

A quantized sign is such a tensor, for grids seldom hold both 1 and -1. Its layer becomes a float one that a QUANTIZE
follows, which the int8 passes take into the binary op afterwards.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from litebnn.contract import Activation, Padding
from litebnn.graph import Array, Graph, Op, OpCode, Tensor, builtin_op, constant
from litebnn.rewriting.build import as_float, derived, equal_op, like, output_of
from litebnn.rewriting.each import each
from litebnn.rewriting.int8 import is_quantized, quantize_op, step_of
from litebnn.rewriting.notes import Notes
from litebnn.rewriting.padding import PADS, constant_padding, layer_padding, pad_with
from litebnn.rewriting.reasons import why_no_sign
from litebnn.rewriting.signs import ShiftedSign, TwoValues, Way, find_way, shifted_sign, why_no_shifted_sign
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
    way = find_way(graph, op)
    if way is None:
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
    return _rewrite(graph, op, way, weights, bias, notes)


def _dense_first(graph: Graph, product: Op, notes: Notes) -> bool:
    """A product with a matrix has no place for a bias: the dense layer that it is has one."""
    way = find_way(graph, product)
    if way is None:
        return False
    if shifted_sign(way) is None:
        return notes.left_alone(product, why_no_shifted_sign(way))
    return product_to_dense(graph, product, notes)


def _rewrite(graph: Graph, layer: Op, way: Way, weights: Array, bias: Array, notes: Notes) -> bool:
    shifted = shifted_sign(way, rather_falling=_falls(graph, way.first, layer))
    amounts = layer_padding(layer)
    if shifted is None:
        return notes.left_alone(layer, why_no_shifted_sign(way))
    zero = shifted.of(0.0)
    if amounts is None and zero:
        two = f"its input takes {way.low:g} and {way.high:g}"
        return notes.left_alone(layer, f"{two}, and how SAME pads it depends on a size that is not known")
    tensor = _sign_at_layer(graph, layer, way, shifted)
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
    """Whether the lower value is better the +1.

    What another layer reads already, as another phase of a transposed convolution, is not made twice; and LceQuantize
    reads x >= 0 from an int8 x, and x < 0 from a boolean.
    """
    source, decides = values.source, graph.producer(values.source)
    made = [equal_op(graph, _select(source, falls, values), before=before) for falls in (False, True)]
    if source.type == "BOOL" and made.count(None) == 1:
        return made[0] is None
    return (values.high < values.low) != (decides is not None and decides.name == "LESS")


def _sign_at_layer(graph: Graph, layer: Op, way: Way, shifted: ShiftedSign) -> Tensor:
    """The sign that a layer is to read in the place of two values."""
    signs = {tensor: _sign(graph, values, shifted, before=layer) for tensor, values in way.sources.items()}
    for op in way.ops:
        signs.update(_copied(graph, op, signs, shifted, before=layer))
    return signs[layer.input(0)]


def _sign(graph: Graph, values: TwoValues, shifted: ShiftedSign, *, before: Op) -> Tensor:
    """±1 for what decides, as the form says of its two values; what is a sign already is itself."""
    source = values.source
    if values.is_sign:
        return source
    if source.type != "BOOL":
        source = _compared(graph, source, values.threshold, before=before)
    return output_of(graph, _select(source, shifted.scale < 0, values), before=before)


def _select(condition: Tensor, falls: bool, values: TwoValues) -> Op:
    """1 where the condition is true, else -1, or the opposite, so that 1 stands for the lower value if it `falls`."""
    picked = (1.0, -1.0) if (values.high > values.low) != falls else (-1.0, 1.0)
    name = derived(condition.name, "/sign" if picked[0] == 1 else "/opposite")
    numbers = (constant(f"{name}/{value:g}", np.asarray(value, np.float32)) for value in picked)
    return builtin_op("SELECT_V2", [condition, *numbers], like(condition, name, type="FLOAT32", dims=values.dims))


def _compared(graph: Graph, x: Tensor, threshold: float, *, before: Op) -> Tensor:
    """Whether x is at least a threshold, half a step below which a quantized x has no number."""
    below = threshold - step_of(x) / 2 if threshold else threshold
    level = constant(derived(x.name, "/threshold"), np.asarray(below, np.float32))
    x = as_float(graph, x, before=before)
    condition = like(x, derived(x.name, "/condition"), type="BOOL")
    return output_of(graph, builtin_op("GREATER_EQUAL", [x, level], condition), before=before)


def _copied(
    graph: Graph, op: Op, signs: Mapping[Tensor, Tensor], shifted: ShiftedSign, *, before: Op
) -> dict[Tensor, Tensor]:
    """The outputs of what `op` does to the values, done to the signs, which no grid has to hold, for its outputs."""
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
