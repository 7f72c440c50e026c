"""Layers that read two values which a boolean or sign selects, and the sign s with s · scale + shift for them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from litebnn.graph import Array, Graph, Op, Tensor, facts
from litebnn.rewriting.int8 import on_grid, step_of
from litebnn.rewriting.match import fused_activation
from litebnn.rewriting.padding import PADS, constant_padding, layer_padding
from litebnn.rewriting.signs.find import TwoValues, find_two_values
from litebnn.rewriting.signs.moved import COMPARING, picked_from

PADDING = (*PADS, "SPACE_TO_BATCH_ND")
ROUNDING = ("QUANTIZE", "DEQUANTIZE")
_FARTHEST = 16
# Adjacent levels are at most this many steps apart, including rounding.
_NEXT_LEVEL = 1.001
_MOST_OPS = 64


@dataclass(frozen=True)
class PathToLayer:
    """The path from tensors of two values to a layer.

    Attributes:
        sources: the tensors whose two values a boolean or a sign selects.
        ops: the ops between the sources and the layer, in order of execution.
        high, low: the two values, as the layer reads them.
        pads: the padding values of the ops and of the layer.
        step: the coarsest scale to which the values are rounded; 0 if all tensors are float.
    """

    sources: Mapping[Tensor, TwoValues]
    ops: tuple[Op, ...]
    high: float
    low: float
    pads: tuple[float, ...]
    step: float

    @property
    def must_rise(self) -> bool:
        """True if the ops have the same effect only on signs that rise with the values."""
        return any(op.name in (*COMPARING, "MUL") for op in self.ops)

    @property
    def first(self) -> TwoValues:
        return next(iter(self.sources.values()))


def handed_on(op: Op) -> tuple[int, ...]:
    """The inputs whose values an op passes on, apart from their position and rounding to a grid.

    The product of two opposite values is one of them too, or its opposite.
    """
    if op.name in PADDING:
        return () if constant_padding(op) is None else (0,)
    if op.name == "MUL" and fused_activation(op) == 0:
        return (0, 1)
    return (0,) if op.name in ROUNDING else picked_from(op)


@dataclass
class _Search:
    """The search upstream from a layer for tensors of two values, and the ops between."""

    graph: Graph
    sources: dict[Tensor, TwoValues] = field(default_factory=dict)
    ops: dict[Op, None] = field(default_factory=dict)

    def reaches(self, tensor: Tensor, depth: int = 0) -> bool:
        """True if all sources of a tensor take two values."""
        op = self.graph.producer(tensor)
        if tensor in self.sources or (op is not None and op in self.ops):
            return True
        values = find_two_values(self.graph, tensor)
        if values is not None:
            self.sources[tensor] = values
            return True
        if op is None or depth == _FARTHEST or len(self.ops) + len(self.sources) > _MOST_OPS:
            return False
        parts = [op.optional(index) for index in handed_on(op)]
        if not parts or not all(part is not None and self.reaches(part, depth + 1) for part in parts):
            return False
        self.ops[op] = None
        return True


def find_path_to_layer(graph: Graph, layer: Op) -> PathToLayer | None:
    """The path of a layer that reads two values; None for other layers, and for plain signs."""
    data, search = layer.input(facts(layer).data), _Search(graph)
    if not search.reaches(data):
        return None
    numbers = {tensor: np.array(sorted((values.high, values.low))) for tensor, values in search.sources.items()}
    for op in search.ops:
        for output in op.outputs:
            joined = _numbers_of(op, [numbers[op.input(index)] for index in handed_on(op)], output)
            if joined is None:
                return None
            numbers[output] = joined
    low, high, *pads = numbers[data].tolist()
    if layer.name == "TRANSPOSE_CONV" or layer_padding(layer) != ((0, 0), (0, 0)):
        pads.append(0.0)
    steps = [step_of(output) for op in search.ops for output in op.outputs]
    step = max([*steps, *(values.step for values in search.sources.values())])
    if high == low or (not step and layer.output.type == "FLOAT32" and _are_plain_signs(search.sources)):
        return None
    return PathToLayer(search.sources, tuple(search.ops), high, low, tuple(pads), step)


def _numbers_of(op: Op, parts: list[Array], output: Tensor) -> Array | None:
    """The lower and the higher value of an op's output, and its padding values; None if there are more values."""
    values = np.array([part[:2] for part in parts])
    if op.name != "MUL" and np.any(np.ptp(values, axis=0) > step_of(output)):
        return None
    middles = (values.min(axis=0) + values.max(axis=0)) / 2
    if op.name == "MUL":
        if any(part.size > 2 or abs(part.sum()) > step_of(output) for part in parts):
            return None
        middles = np.prod(values[:, 1]) * np.array([-1, 1])
    padding = constant_padding(op) if op.name in PADDING else None
    pads = [padding.value] if padding is not None and np.any(padding.amounts) else []
    return on_grid(np.concatenate([middles, *(part[2:] for part in parts), pads]), output)


def _are_plain_signs(sources: Mapping[Tensor, TwoValues]) -> bool:
    """True if the values are signs that other passes handle without a shift: a boolean's ±1 or its opposite."""
    return all(
        (values.high, values.low) == (1.0, -1.0) or (not values.is_sign and (values.high, values.low) == (-1.0, 1.0))
        for values in sources.values()
    )


@dataclass(frozen=True)
class ShiftedSign:
    """Two values as s · scale + shift of a sign s, each within `step`."""

    scale: float
    shift: float
    step: float

    def of(self, value: float) -> float:
        """The number among the signs that corresponds to a number among the values."""
        number = (value - self.shift) / self.scale
        return round(number) if abs((round(number) - number) * self.scale) <= _NEXT_LEVEL * self.step else number


def why_no_shifted_sign(path: PathToLayer) -> str:
    """The reason if `shifted_sign` finds no form."""
    two = f"its input takes {path.low:g} and {path.high:g}"
    known = (path.low, path.high, (path.low + path.high) / 2)
    stray = [pad for pad in path.pads if pad not in known]
    if stray:
        return f"{two} and is padded with {stray[0]:g}, which is neither"
    what = "maxima" if any(op.name in COMPARING for op in path.ops) else "products"
    return f"{two}, of which it takes {what} against a sign"


def shifted_sign(path: PathToLayer, *, rather_falling: bool = False) -> ShiftedSign | None:
    """The form whose padding values are signs or zeros; +1 is preferred, because LceBconv2d can pad with it.

    Args:
        rather_falling: True to choose the form whose +1 stands for the lower value, if both are possible.
    """
    middle, half = (path.high + path.low) / 2, (path.high - path.low) / 2
    # An existing sign fixes the value that +1 stands for. A maximum of values is a maximum of signs only if these rise
    # with the values.
    falls = {values.high < values.low for values in path.sources.values() if values.is_sign}
    scales = [scale for scale in (half, -half) if falls <= {scale < 0} and (scale > 0 or not path.must_rise)]
    forms = [ShiftedSign(scale, middle, path.step) for scale in scales]
    possible = [form for form in forms if all(form.of(pad) in (-1.0, 0.0, 1.0) for pad in path.pads)]
    return max(
        possible,
        key=lambda form: (sum(map(form.of, path.pads)), (form.scale < 0) == rather_falling),
        default=None,
    )
