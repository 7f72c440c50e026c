"""What reads two values that a boolean or a sign decides, and the sign of which these are s · scale + shift."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from litebnn.graph import Graph, Op, Tensor, facts
from litebnn.rewriting.int8 import is_quantized, on_grid
from litebnn.rewriting.match import fused_activation
from litebnn.rewriting.padding import PADS, constant_padding, layer_padding
from litebnn.rewriting.signs.find import TwoValues, find_two_values
from litebnn.rewriting.signs.moved import MOVING

PADDING = (*PADS, "SPACE_TO_BATCH_ND")
ROUNDING = ("QUANTIZE", "DEQUANTIZE")
_PASSED = (*PADDING, *ROUNDING, *MOVING, "MAX_POOL_2D")
_FARTHEST = 5


@dataclass(frozen=True)
class Way:
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


def find_way(graph: Graph, layer: Op) -> Way | None:
    """How a layer reads two values; None where it does not, or reads plain signs."""
    ops: list[Op] = []
    tensor = layer.input(facts(layer).data)
    while (values := find_two_values(graph, tensor)) is None:
        op = graph.producer(tensor)
        if op is None or not _hands_on(op) or len(ops) == _FARTHEST:
            return None
        if fused_activation(op) != 0 or (op.name in PADDING and constant_padding(op) is None):
            return None
        ops.append(op)
        tensor = op.input(0)
    ops.reverse()
    numbers = [values.high, values.low]
    for op in ops:
        padding = constant_padding(op) if op.name in PADDING else None
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
    return Way(TwoValues(values.source, high, low, values.dims), tuple(ops), tuple(pads), maximum, step)


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


@dataclass(frozen=True)
class ShiftedSign:
    """Two values as s · scale + shift of the sign s of their source, or of its opposite, each within `step`."""

    scale: float
    shift: float
    opposite: bool
    step: float

    def of(self, value: float) -> float:
        """The number that stands among the signs for one that stands among the values."""
        number = (value - self.shift) / self.scale
        return round(number) if abs((round(number) - number) * self.scale) <= self.step else number


def why_no_shifted_sign(way: Way) -> str:
    """The reason where `shifted_sign` finds none."""
    two = f"its input takes {way.values.low:g} and {way.values.high:g}"
    known = (way.values.low, way.values.high, (way.values.low + way.values.high) / 2)
    stray = [pad for pad in way.pads if pad not in known]
    return (
        f"{two} and is padded with {stray[0]:g}, which is neither"
        if stray
        else f"{two}, of which it takes maxima against a sign"
    )


def shifted_sign(way: Way, *, rather_opposite: bool = False) -> ShiftedSign | None:
    """The form whose pads are signs, or zeros; rather +1 than -1, which LceBconv2d can pad with by itself.

    Args:
        rather_opposite: where both do; LceQuantize reads x >= 0 from an int8 x, and x < 0 from a boolean alone.
    """
    high, low = way.values.high, way.values.low
    forms = [ShiftedSign((high - low) / 2, (high + low) / 2, False, way.step)]
    if way.values.source.type == "BOOL":
        forms.append(ShiftedSign((low - high) / 2, (high + low) / 2, True, way.step))
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
