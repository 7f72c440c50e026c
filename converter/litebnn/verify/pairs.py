"""Pairs of tensors that should have the same values: one tensor of a source model, and one of its conversion."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace

from litebnn.analysis.bits import channels_of_bits
from litebnn.analysis.few_values import FewValues, few_values
from litebnn.analysis.signs import find_sign
from litebnn.analysis.values import values_of
from litebnn.contract import LCE_BCONV_2D, LCE_DEQUANTIZE, LCE_QUANTIZE, pack_bits, unpack_bits
from litebnn.graph import Array, Graph, Origin, Tensor, facts

_TYPES_OF_NUMBERS = ("FLOAT32", "INT8")
_NUMBERS, _BITS = "numbers", "bits"


@dataclass(frozen=True)
class TracedTensor:
    """A tensor of one of the two compared models, and the source model's tensor from which its values come."""

    tensor: Tensor
    origin: Origin

    def restored(self, values: Array) -> Array:
        """Moves values of the tensor to the layout of the source's tensor. The result has numbers, or for signs a bool
        that is True for -1.

        Raises:
            ValueError: the number of values does not match the origin.
        """
        origin = self.origin
        return origin.restored(unpack_bits(values, origin.signs) if origin.signs else values)

    def made(self, values: Array) -> Array:
        """Moves values from the layout of the source's tensor to the layout of this tensor. It is the inverse of the
        method `restored`.
        """
        made = self.origin.made(values)
        return pack_bits(made) if self.origin.signs else made


@dataclass(frozen=True)
class Pair:
    """A tensor that the source model and the converted model both compute. It contains numbers, or signs that are
    packed in the converted model or in both models.
    """

    source: TracedTensor
    # The source model's tensor that is compared with thresholds, which gives the signs or levels in `source.tensor`. If
    # there are no thresholds, it is `source.tensor` itself. None if the source model does not compute the tensor.
    operand: Tensor | None
    # The thresholds: values of the tensor `operand` at which the compared signs or levels change.
    thresholds: tuple[float | Array, ...]
    result: TracedTensor
    # The values of activation levels, and the ops that move the levels from the layout of `operand` to the layout of
    # the source model's tensor. None for signs and other numbers.
    levels: FewValues | None = None
    # The shape of the source model's tensor before any reshapes flatten it. If the tensor `operand` is smaller, it is
    # broadcast to this shape.
    spread: tuple[int, ...] = ()
    # True if the converted model computes the tensor from a binary convolution of activation levels. The convolution
    # scales sums of signs and adds a bias, with rounding. A sum that is zero in the source may then become a tiny
    # number.
    rounds_zero: bool = False

    @property
    def is_of_signs(self) -> bool:
        """True if signs are compared, rather than numbers or levels."""
        return self.result.origin.signs > 0 and self.result.origin.counted is None

    def expected(self, values: Array) -> Array:
        """The values that the tensor of the converted model should have: numbers, or for signs a bool that is True for
        -1. They are computed from `values`, the values of the source model's tensor.
        """
        restored = self.source.restored(values)
        if not self.is_of_signs or self.source.origin.signs:
            return restored
        return ~restored if self.source.tensor.type == "BOOL" else restored < 0


def pairs_of(source: Graph, result: Graph) -> list[Pair]:
    """The tensors that both models compute, in the order in which the converted model computes them."""
    tensors = _traced_tensors(source)
    known = {(_first(traced.origin.source), _kind(traced)): traced for traced in tensors}
    known |= {(traced.origin.source, _kind(traced)): traced for traced in tensors}
    pairs = []
    for traced in _traced_tensors(result):
        counted, name = traced.origin.counted, traced.origin.source
        kinds = (_BITS, _NUMBERS, *(["BOOL"] if counted is None else [])) if traced.origin.signs else (_kind(traced),)
        keys = [(one, kind) for kind in kinds for one in (name, _first(name))]
        twin = next((known[key] for key in keys if key in known), None)
        if twin is None or (twin.origin.signs and counted is not None and twin.origin.counted is None):
            continue
        tensor = twin.tensor
        decision: tuple[Tensor | None, tuple[float | Array, ...]]
        few = None if counted is None or twin.origin.signs else few_values(source, tensor)
        levels = few if few is not None and few.are_levels else None
        if twin.origin.signs:
            decision = _packed(source, tensor), (0.0,)
        elif levels is not None:
            decision = None, tuple(levels.first.edges.tolist())
        else:
            decision = _turning(source, tensor)
        operand, thresholds = decision
        pairs.append(Pair(twin, operand, thresholds, traced, levels, _before_reshapes(source, tensor).shape))
    counts = [(pair.result.tensor, pair.result.origin.counted) for pair in pairs]
    rounded = _downstream_of_levels(
        result, [tensor for tensor, counted in counts if counted is not None and counted.middle != 0]
    )
    return [replace(pair, rounds_zero=pair.result.tensor in rounded) for pair in pairs]


def computed(graph: Graph) -> list[Tensor]:
    """The outputs of all ops in a graph."""
    return [tensor for op in graph.ops for tensor in op.outputs]


def _traced_tensors(graph: Graph) -> list[TracedTensor]:
    """The tensors of a model that hold numbers or signs, by their names. Tensors whose names are not unique are left
    out.
    """
    bits = channels_of_bits(graph)
    times = Counter(tensor.name for tensor in computed(graph))
    tensors = []
    for tensor in computed(graph):
        if tensor.origin is not None:
            tensors.append(TracedTensor(tensor, tensor.origin))
        elif times[tensor.name] == 1 and (tensor in bits or tensor.type in (*_TYPES_OF_NUMBERS, "BOOL")):
            tensors.append(TracedTensor(tensor, Origin(tensor.name, signs=bits.get(tensor, 0))))
    return tensors


def _first(name: str) -> str:
    """The first of the names in a tensor's name, which exporters join with semicolons. Two exporters may join the same
    first name with different further names.
    """
    return name.split(";")[0]


def _kind(traced: TracedTensor) -> str:
    if traced.origin.signs:
        return _BITS
    return _NUMBERS if traced.tensor.type in _TYPES_OF_NUMBERS else traced.tensor.type


def _downstream_of_levels(graph: Graph, levels: list[Tensor]) -> set[Tensor]:
    """The outputs of binary convolutions that read activation levels as several signs, and of the ops after these
    convolutions up to the next signs.
    """
    bits, behind = set(levels), set[Tensor]()
    for op in graph.ops:
        if not bits.isdisjoint(op.inputs):
            (behind if op.name == LCE_BCONV_2D else bits).update(op.outputs)
        elif op.name not in (LCE_BCONV_2D, LCE_DEQUANTIZE) and not behind.isdisjoint(op.inputs):
            behind.update(op.outputs)
    return behind


def _packed(graph: Graph, bits: Tensor) -> Tensor | None:
    """The float tensor whose signs an LceQuantize packed into these bits; None for other bits."""
    op = graph.producer(bits, LCE_QUANTIZE)
    return op.input(0) if op is not None and op.input(0).type == "FLOAT32" else None


def _turning(graph: Graph, tensor: Tensor) -> tuple[Tensor, tuple[float | Array, ...]]:
    """The tensor whose values determine a tensor's signs or levels, and the thresholds.

    For a tensor of other numbers, the result is the tensor itself, without thresholds.
    """
    decided = _before_reshapes(graph, tensor)
    sign = find_sign(graph, decided)
    if sign is not None and sign.x.type == "FLOAT32":
        return sign.x, (sign.level if sign.level.size > 1 else float(sign.level[0]),)
    values = values_of(graph, decided)
    levels = values if sign is None else values_of(graph, _before_reshapes(graph, sign.x))
    if levels.x is not None and levels.x.type == "FLOAT32" and levels.is_known and len(levels.edges) == 1:
        values = levels
    if values.x is None or values.x.type != "FLOAT32" or not values.is_known:
        return tensor, ()
    return values.x, tuple(values.edges.tolist())


def _before_reshapes(graph: Graph, tensor: Tensor) -> Tensor:
    """The tensor upstream of all reshapes that produce `tensor`. TensorFlow inserts reshapes to flatten signs and their
    conditions.
    """
    while (op := graph.producer(tensor)) is not None and facts(op).reshapes:
        tensor = op.input(0)
    return tensor
