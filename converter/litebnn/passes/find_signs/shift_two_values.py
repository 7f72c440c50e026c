"""A layer of two values that a boolean decides, 0 and 1 for one -> the layer of a sign, with other weights and bias.

Each value is s · scale + shift of a sign s, so a filter w of it is the filter w · scale of the sign, and the bias grows
by shift · sum(w). What pads the values pads the sign too: for 0 and 1, a zero is the sign's -1, or the +1 of its
opposite.

A quantized sign is such a tensor, for grids seldom hold both 1 and -1. Its layer becomes a float one that a QUANTIZE
follows, which the int8 passes take into the binary op afterwards.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from litebnn.contract import Activation, Padding
from litebnn.graph import Array, Graph, Op, OpCode, Tensor, builtin_op, constant, facts
from litebnn.rewriting.build import derived, like
from litebnn.rewriting.constants import evaluate
from litebnn.rewriting.each import each
from litebnn.rewriting.int8 import is_quantized, on_grid, quantize_op
from litebnn.rewriting.match import fused_activation
from litebnn.rewriting.notes import Notes
from litebnn.rewriting.padding import PADS, constant_padding, layer_padding, pad_with
from litebnn.rewriting.reasons import why_no_sign
from litebnn.rewriting.signs import TwoValues, find_two_values
from litebnn.rewriting.weights import (
    binary_weights,
    clamps_no_more,
    layer_bias,
    not_float,
    weight_values,
    why_not_binary,
)

_PADDING = (*PADS, "SPACE_TO_BATCH_ND")
_ROUNDING = ("QUANTIZE", "DEQUANTIZE")
_PASSED = (*_PADDING, *_ROUNDING, "TRANSPOSE", "MAX_POOL_2D")
_FARTHEST = 5


@dataclass(frozen=True)
class _Way:
    """How a layer reads its two values.

    Attributes:
        ops: what lies between the two, in order of execution.
        pads: the numbers that they, and the layer itself, pad with.
        maximum: they take maxima.
        step: that of the coarsest grid to which the values are rounded, 0 where they are float all through.
    """

    values: TwoValues
    ops: tuple[Op, ...]
    pads: tuple[float, ...]
    maximum: bool
    step: float


@each("CONV_2D", "FULLY_CONNECTED")
def shift_two_values(graph: Graph, op: Op, notes: Notes) -> bool:
    if op.output.type != "FLOAT32" and not is_quantized(op.output):
        return notes.left_alone(op, f"its output is {op.output.type}")
    way = find_way(graph, op)
    if way is None:
        is_float = op.output.type == "FLOAT32"
        return False if is_float else notes.left_alone(op, why_no_sign(graph, op.input(0)))
    weights = _weights(graph, op.input(1))
    if weights is None or weights.dtype != np.float32 or weights.ndim < 2:
        return notes.left_alone(op, not_float(op.input(1)))
    parts = why_not_binary(op, weights) or binary_weights(weights)
    if isinstance(parts, str):
        return notes.left_alone(op, parts)
    bias = layer_bias(graph, op, weights.shape[0])
    if bias is None:
        return notes.left_alone(op, f'its bias "{op.input(2).name}" is no constant, or none of its grid')
    return _rewrite(graph, op, way, weights, bias, notes)


def _weights(graph: Graph, tensor: Tensor) -> Array | None:
    return weight_values(tensor) if tensor.is_constant else evaluate(graph, tensor)


def find_way(graph: Graph, layer: Op) -> _Way | None:
    """How a layer reads two values; None where it does not, or reads plain signs."""
    ops: list[Op] = []
    tensor = layer.input(facts(layer).data)
    while (values := find_two_values(graph, tensor)) is None:
        op = graph.producer(tensor)
        if op is None or not _hands_on(op) or len(ops) == _FARTHEST:
            return None
        if fused_activation(op) != 0 or (op.name in _PADDING and constant_padding(op) is None):
            return None
        ops.append(op)
        tensor = op.input(0)
    ops.reverse()
    numbers = [values.high, values.low]
    for op in ops:
        padding = constant_padding(op) if op.name in _PADDING else None
        if padding is not None and np.any(padding.amounts):
            numbers.append(padding.value)
        rounded = on_grid(np.array(numbers), op.output)
        if rounded is None:
            return None
        numbers = rounded.tolist()
    high, low, *pads = numbers
    if layer.name == "TRANSPOSE_CONV" or layer_padding(layer) != ((0, 0), (0, 0)):
        pads.append(0.0)
    step = max(_steps_of_grids(graph, layer.input(facts(layer).data)), default=0.0)
    if high == low or (not step and layer.output.type == "FLOAT32" and _is_plain_sign(values)):
        return None
    maximum = any(op.name == "MAX_POOL_2D" for op in ops)
    return _Way(TwoValues(values.source, high, low, values.dims), tuple(ops), tuple(pads), maximum, step)


def _hands_on(op: Op) -> bool:
    """Whether values go through the op as they are, but for their place and the grid that they are rounded to."""
    return facts(op).reshapes or op.name in _PASSED


def _steps_of_grids(graph: Graph, tensor: Tensor) -> Iterator[float]:
    """How far apart the levels are of a tensor and of those in front of it, as far as values are handed on."""
    for _ in range(_FARTHEST):
        if is_quantized(tensor):
            assert tensor.per_tensor_quantization is not None
            yield tensor.per_tensor_quantization[0]
        op = graph.producer(tensor)
        if op is None or not _hands_on(op):
            return
        tensor = op.input(0)


def _is_plain_sign(values: TwoValues) -> bool:
    """Whether other passes do without a shift; they know a boolean's ±1 as a sign, and so its opposite too."""
    either = (-1.0, 1.0) if values.source.type == "BOOL" else (1.0, -1.0)
    return (values.high, values.low) in ((1.0, -1.0), either)


def _rewrite(graph: Graph, layer: Op, way: _Way, weights: Array, bias: Array, notes: Notes) -> bool:
    decides = graph.producer(way.values.source)
    shifted = shifted_sign(way, rather_opposite=decides is not None and decides.name == "LESS")
    amounts = layer_padding(layer)
    two = f"its input takes {way.values.low:g} and {way.values.high:g}"
    if shifted is None:
        return notes.left_alone(layer, why_no_shifted_sign(way))
    zero = shifted.of(0.0)
    if amounts is None and zero:
        return notes.left_alone(layer, f"{two}, and how SAME pads it depends on a size that is not known")
    tensor = _sign(graph, way.values, shifted.opposite, before=layer)
    for op in way.ops:
        tensor = _copy(graph, op, tensor, shifted, before=layer)
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


@dataclass(frozen=True)
class _ShiftedSign:
    """Two values as s · scale + shift of the sign s of their source, or of its opposite, each within `step`."""

    scale: float
    shift: float
    opposite: bool
    step: float

    def of(self, value: float) -> float:
        """The number that stands among the signs for one that stands among the values."""
        number = (value - self.shift) / self.scale
        return round(number) if abs((round(number) - number) * self.scale) <= self.step else number


def why_no_shifted_sign(way: _Way) -> str:
    """The reason where `shifted_sign` finds none."""
    two = f"its input takes {way.values.low:g} and {way.values.high:g}"
    known = (way.values.low, way.values.high, (way.values.low + way.values.high) / 2)
    stray = [pad for pad in way.pads if pad not in known]
    return (
        f"{two} and is padded with {stray[0]:g}, which is neither"
        if stray
        else f"{two}, of which it takes maxima against a sign"
    )


def shifted_sign(way: _Way, *, rather_opposite: bool = False) -> _ShiftedSign | None:
    """The form whose pads are signs, or zeros; rather +1 than -1, which LceBconv2d can pad with by itself.

    Args:
        rather_opposite: where both do; LceQuantize reads x >= 0 from an int8 x, and x < 0 from a boolean alone.
    """
    high, low = way.values.high, way.values.low
    forms = [_ShiftedSign((high - low) / 2, (high + low) / 2, False, way.step)]
    if way.values.source.type == "BOOL":
        forms.append(_ShiftedSign((low - high) / 2, (high + low) / 2, True, way.step))
    # A maximum of values is one of signs where these rise with them.
    possible = [
        form
        for form in forms
        if all(form.of(pad) in (-1.0, 0.0, 1.0) for pad in way.pads) and (form.scale > 0 or not way.maximum)
    ]
    return max(
        possible,
        key=lambda form: (sum(map(form.of, way.pads)), form.opposite == rather_opposite),
        default=None,
    )


def _sign(graph: Graph, values: TwoValues, opposite: bool, *, before: Op) -> Tensor:
    """±1 for a boolean, -1 where it is true if `opposite`; what is a sign already is itself."""
    source = values.source
    if source.type != "BOOL":
        return source
    name = derived(source.name, "/opposite" if opposite else "/sign")
    sign = like(source, name, type="FLOAT32", dims=values.dims)
    one, minus = (constant(f"{name}/{value}", np.asarray(value, np.float32)) for value in (1, -1))
    picked = (minus, one) if opposite else (one, minus)
    graph.insert(builtin_op("SELECT_V2", [source, *picked], sign), before=before)
    return sign


def _copy(graph: Graph, op: Op, source: Tensor, shifted: _ShiftedSign, *, before: Op) -> Tensor:
    """What `op` does to the values, done to the sign, which no grid has to hold."""
    parameters = op.inputs[1:]
    padding = constant_padding(op) if op.name in _PADDING else None
    if padding is not None and np.any(padding.amounts):
        source = pad_with(graph, source, padding.amounts, shifted.of(padding.value), before=before)
        none = np.zeros_like(op.input(-1).array)
        parameters = [*op.inputs[1:-1], constant(derived(op.output.name, "/no_padding"), none)]
    if op.name in (*PADS, *_ROUNDING):
        return source
    output = like(op.output, derived(op.output.name, "/of_sign"), type="FLOAT32")
    graph.insert(Op(op.code, [source, *parameters], [output], op.options), before=before)
    return output
