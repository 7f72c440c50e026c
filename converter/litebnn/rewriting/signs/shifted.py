"""What reads two values that booleans or signs decide, and the sign of which these are s · scale + shift."""

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
_MOST_OPS = 64


@dataclass(frozen=True)
class Way:
    """How a layer reads its two values.

    Attributes:
        sources: the tensors that take two values because a boolean or a sign decides.
        ops: what lies between these and the layer, in order of execution.
        high, low: the two values, as the layer reads them.
        pads: the numbers that the ops, and the layer itself, pad with.
        step: that of the coarsest grid to which the values are rounded, 0 where they are float all through.
    """

    sources: Mapping[Tensor, TwoValues]
    ops: tuple[Op, ...]
    high: float
    low: float
    pads: tuple[float, ...]
    step: float

    @property
    def must_rise(self) -> bool:
        """Whether what the ops do to the values they do to signs that rise with them alone."""
        return any(op.name in (*COMPARING, "MUL") for op in self.ops)

    @property
    def first(self) -> TwoValues:
        return next(iter(self.sources.values()))


def handed_on(op: Op) -> tuple[int, ...]:
    """Which inputs an op hands on the values of, but for their place and the grid that they are rounded to.

    Of values that are opposite a product is one, too, or the opposite.
    """
    if op.name in PADDING:
        return () if constant_padding(op) is None else (0,)
    if op.name == "MUL" and fused_activation(op) == 0:
        return (0, 1)
    return (0,) if op.name in ROUNDING else picked_from(op)


@dataclass
class _Search:
    """Goes back from a layer to the tensors that take two values, and along what lies between."""

    graph: Graph
    sources: dict[Tensor, TwoValues] = field(default_factory=dict)
    ops: dict[Op, None] = field(default_factory=dict)

    def reaches(self, tensor: Tensor, depth: int = 0) -> bool:
        """Whether all that a tensor is made of takes two values."""
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


def find_way(graph: Graph, layer: Op) -> Way | None:
    """How a layer reads two values; None where it does not, or reads plain signs."""
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
    return Way(search.sources, tuple(search.ops), high, low, tuple(pads), step)


def _numbers_of(op: Op, parts: list[Array], output: Tensor) -> Array | None:
    """The lower and the higher value of an op's output and what it is padded with; None where there are more."""
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
    """Whether other passes do without a shift; they know a boolean's ±1 as a sign, and so its opposite too."""
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
        """The number that stands among the signs for one that stands among the values."""
        number = (value - self.shift) / self.scale
        return round(number) if abs((round(number) - number) * self.scale) <= self.step else number


def why_no_shifted_sign(way: Way) -> str:
    """The reason where `shifted_sign` finds none."""
    two = f"its input takes {way.low:g} and {way.high:g}"
    known = (way.low, way.high, (way.low + way.high) / 2)
    stray = [pad for pad in way.pads if pad not in known]
    if stray:
        return f"{two} and is padded with {stray[0]:g}, which is neither"
    what = "maxima" if any(op.name in COMPARING for op in way.ops) else "products"
    return f"{two}, of which it takes {what} against a sign"


def shifted_sign(way: Way, *, rather_falling: bool = False) -> ShiftedSign | None:
    """The form whose pads are signs, or zeros; rather +1 than -1, which LceBconv2d can pad with by itself.

    Args:
        rather_falling: where both do, that whose +1 stands for the lower value.
    """
    middle, half = (way.high + way.low) / 2, (way.high - way.low) / 2
    # What is a sign already is either +1 for the higher value or for the lower one; and a maximum of values is one of
    # signs where these rise with them.
    falls = {values.high < values.low for values in way.sources.values() if values.is_sign}
    scales = [scale for scale in (half, -half) if falls <= {scale < 0} and (scale > 0 or not way.must_rise)]
    forms = [ShiftedSign(scale, middle, way.step) for scale in scales]
    possible = [form for form in forms if all(form.of(pad) in (-1.0, 0.0, 1.0) for pad in way.pads)]
    return max(
        possible,
        key=lambda form: (sum(map(form.of, way.pads)), (form.scale < 0) == rather_falling),
        default=None,
    )
