"""A layer of two values that a boolean decides, 0 and 1 for one -> the layer of a sign, with other weights and bias.

Each value is s · scale + shift of a sign s, so a filter w of it is the filter w · scale of the sign, and the bias grows
by shift · sum(w). What pads the values pads the sign too: for 0 and 1, a zero is the sign's -1, or the +1 of its
opposite.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from litebnn.contract import Padding
from litebnn.graph import Array, Graph, Op, Tensor, builtin_op, constant, facts
from litebnn.rewriting.build import derived, like
from litebnn.rewriting.constants import evaluate
from litebnn.rewriting.each import each
from litebnn.rewriting.match import fused_activation
from litebnn.rewriting.notes import Notes
from litebnn.rewriting.padding import PADS, constant_padding, layer_padding, pad_with
from litebnn.rewriting.signs import TwoValues, find_two_values
from litebnn.rewriting.weights import bias_values, binary_weights

_PADDING = (*PADS, "SPACE_TO_BATCH_ND")
_PASSED = (*_PADDING, "TRANSPOSE", "MAX_POOL_2D")
_FARTHEST = 5


@dataclass(frozen=True)
class _Way:
    """How a layer reads its two values.

    Attributes:
        ops: what lies between the two, in order of execution.
        pads: the numbers that they, and the layer itself, pad with.
        maximum: they take maxima.
    """

    values: TwoValues
    ops: tuple[Op, ...]
    pads: tuple[float, ...]
    maximum: bool


@each("CONV_2D", "FULLY_CONNECTED")
def shift_two_values(graph: Graph, op: Op, notes: Notes) -> bool:
    way = _find_way(graph, op) if op.output.type == "FLOAT32" else None
    weights = None if way is None else evaluate(graph, op.input(1))
    if way is None or weights is None or weights.dtype != np.float32 or weights.ndim < 2:
        return False
    parts, bias = binary_weights(weights), bias_values(op.optional(2), weights.shape[0])
    if isinstance(parts, str):
        return notes.left_alone(op, parts)
    return bias is not None and _rewrite(graph, op, way, weights, bias, notes)


def _find_way(graph: Graph, layer: Op) -> _Way | None:
    ops: list[Op] = []
    pads = [0.0] if layer_padding(layer) != ((0, 0), (0, 0)) else []
    tensor = layer.input(0)
    while (values := find_two_values(graph, tensor)) is None:
        op = graph.producer(tensor)
        if op is None or not (facts(op).reshapes or op.name in _PASSED) or len(ops) == _FARTHEST:
            return None
        if fused_activation(op) != 0:
            return None
        if op.name in _PADDING:
            padding = constant_padding(op)
            if padding is None:
                return None
            if np.any(padding.amounts):
                pads.append(padding.value)
        ops.append(op)
        tensor = op.input(0)
    if values.high == values.low or _is_plain_sign(values):
        return None
    return _Way(values, tuple(reversed(ops)), tuple(pads), any(op.name == "MAX_POOL_2D" for op in ops))


def _is_plain_sign(values: TwoValues) -> bool:
    """Whether other passes do without a shift; they know a boolean's ±1 as a sign, and so its opposite too."""
    either = (-1.0, 1.0) if values.source.type == "BOOL" else (1.0, -1.0)
    return (values.high, values.low) in ((1.0, -1.0), either)


def _rewrite(graph: Graph, layer: Op, way: _Way, weights: Array, bias: Array, notes: Notes) -> bool:
    shifted = _as_shifted_sign(way)
    amounts = layer_padding(layer)
    two = f"its input takes {way.values.low:g} and {way.values.high:g}"
    if shifted is None:
        known = (way.values.low, way.values.high, (way.values.low + way.values.high) / 2)
        stray = [pad for pad in way.pads if pad not in known]
        why = (
            f" and is padded with {stray[0]:g}, which is neither"
            if stray
            else ", of which it takes maxima against a sign"
        )
        notes.left_alone(layer, two + why)
        return False
    if amounts is None and shifted.shift:
        return notes.left_alone(layer, f"{two}, and how SAME pads it depends on a size that is not known")
    tensor = _sign(graph, way.values.source, shifted.opposite, before=layer)
    for op in way.ops:
        tensor = _copy(graph, op, tensor, shifted, before=layer)
    if shifted.shift and amounts is not None and amounts != ((0, 0), (0, 0)):
        tensor = pad_with(graph, tensor, np.asarray([(0, 0), *amounts, (0, 0)]), shifted.of(0.0), before=layer)
        layer.options.padding = int(Padding.VALID)
    sums = weights.reshape(weights.shape[0], -1).sum(axis=1, dtype=np.float64)
    name = layer.input(1).name
    inputs = [
        tensor,
        constant(name, (weights * shifted.scale).astype(np.float32)),
        constant(derived(name, "/bias"), (bias + shifted.shift * sums).astype(np.float32)),
    ]
    notes.became(layer, graph.replace(layer, Op(layer.code, [*inputs], layer.outputs, layer.options)))
    return True


@dataclass(frozen=True)
class _ShiftedSign:
    """Two values as s · scale + shift of the sign s of their source, or of its opposite."""

    scale: float
    shift: float
    opposite: bool

    def of(self, value: float) -> float:
        """The number that stands among the signs for one that stands among the values."""
        return (value - self.shift) / self.scale


def _as_shifted_sign(way: _Way) -> _ShiftedSign | None:
    """The form whose pads are signs, or zeros; rather +1 than -1, which LceBconv2d can pad with by itself."""
    high, low = way.values.high, way.values.low
    forms = [_ShiftedSign((high - low) / 2, (high + low) / 2, opposite=False)]
    if way.values.source.type == "BOOL":
        forms.append(_ShiftedSign((low - high) / 2, (high + low) / 2, opposite=True))
    # A maximum of values is one of signs where these rise with them.
    possible = [
        form
        for form in forms
        if all(form.of(pad) in (-1.0, 0.0, 1.0) for pad in way.pads) and (form.scale > 0 or not way.maximum)
    ]
    return max(possible, key=lambda form: sum(map(form.of, way.pads)), default=None)


def _sign(graph: Graph, source: Tensor, opposite: bool, *, before: Op) -> Tensor:
    """±1 for a boolean, -1 where it is true if `opposite`; what is a sign already is itself."""
    if source.type != "BOOL":
        return source
    name = derived(source.name, "/opposite" if opposite else "/sign")
    sign = like(source, name, type="FLOAT32")
    one, minus = (constant(f"{name}/{value}", np.asarray(value, np.float32)) for value in (1, -1))
    picked = (minus, one) if opposite else (one, minus)
    graph.insert(builtin_op("SELECT_V2", [source, *picked], sign), before=before)
    return sign


def _copy(graph: Graph, op: Op, source: Tensor, shifted: _ShiftedSign, *, before: Op) -> Tensor:
    """What `op` does to the values, done to the sign."""
    parameters = op.inputs[1:]
    padding = constant_padding(op) if op.name in _PADDING else None
    if padding is not None and np.any(padding.amounts):
        source = pad_with(graph, source, padding.amounts, shifted.of(padding.value), before=before)
        none = np.zeros_like(op.input(-1).array)
        parameters = [*op.inputs[1:-1], constant(derived(op.output.name, "/no_padding"), none)]
    if op.name in PADS:
        return source
    output = like(op.output, derived(op.output.name, "/of_sign"))
    graph.insert(Op(op.code, [source, *parameters], [output], op.options), before=before)
    return output
