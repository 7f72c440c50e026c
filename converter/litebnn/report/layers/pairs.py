"""Which tensors of a model stand for which of its conversion."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from litebnn.contract import BITS_PER_WORD, LCE_BCONV_2D, LCE_DEQUANTIZE, LCE_QUANTIZE
from litebnn.graph import Array, Graph, Tensor, facts
from litebnn.report.anatomy import channels_of_bits
from litebnn.rewriting.signs import Thermometer, find_levels, find_sign, find_two_levels
from litebnn.rewriting.signs.steps import steps_of
from litebnn.rewriting.signs.thermometer_bits import LEVELS, moved_in_front

_TYPES_OF_NUMBERS = ("FLOAT32", "INT8")
# What is looked for under a name: numbers, or bits.
_NUMBERS, _BITS = "numbers", "bits"
# The passes append these to the name of a tensor whose axes they put into another order: a transpose goes behind it, or
# a dense layer takes the features that it flattens as they come.
_UNTURNED, _PERMUTED = "/unturned", "/permuted"
# This they append where some channels of its signs are the opposite ones, as the weights of the layers behind are.
_NEGATED = "/negated"
# The others stand for its bits, for those of its levels, and for itself in front of a reshape.
_SUFFIXES = ("/bits", "/unshaped", _UNTURNED, _PERMUTED, _NEGATED, LEVELS)
# A sign that a boolean decides is named after this one, the latter where it is +1 for false.
_SIGN, _OPPOSITE = "sign", "opposite"


@dataclass(frozen=True)
class Pair:
    """A tensor that both models have: of numbers, or of signs that are packed in the result, or in both.

    Attributes:
        operand, thresholds: what the source's tensor is a sign of, or takes few numbers by, and where these turn;
            without a threshold, itself; None where it is of bits whose operand is not computed.
        spread: the shape in which the operand decides on all that the source's tensor holds, perhaps flattened.
        signs: how many signs the last axis of the result's tensor holds; None for one of numbers.
        is_packed: whether the source's is of bits too.
        turned: of a tensor whose axes the result may have in another order, what these are in the source, the batch
            first; of one whose features are flattened, what these were before.
        levels: what the signs of the result may say of the source's operand, where the source's tensor takes few
            levels. The result may see that some of these are not reached, but not which they are of the source's.
        rounds_zero: whether the result adds what signs of levels count to what the level in the middle is worth. Both
            are rounded, so that no sum is zero for certain.
    """

    source: Tensor
    operand: Tensor | None
    thresholds: tuple[float | Array, ...]
    result: Tensor
    signs: int | None
    is_packed: bool = False
    turned: tuple[int, ...] = ()
    levels: tuple[Thermometer, ...] = ()
    spread: tuple[int, ...] = ()
    rounds_zero: bool = False

    @property
    def is_opposite(self) -> bool:
        """Whether the result has +1 where the source's boolean is false."""
        return self.source.type == "BOOL" and _layer(self.result.name).endswith(f"/{_OPPOSITE}")

    @property
    def is_negated(self) -> bool:
        """Whether one of the models has the opposite signs in some channels, and only samples tell in which."""
        names = (self.source.name, self.result.name)
        return self.signs is not None and not self.levels and any(_NEGATED in name for name in names)


def pairs_of(source: Graph, result: Graph) -> list[Pair]:
    """The tensors that both models compute, in the result's order of execution."""
    known, bits, ambiguous = _by_name(source), channels_of_bits(result), _repeated(result)
    pairs = []
    for tensor in computed(result):
        words = BITS_PER_WORD * tensor.channels if tensor.type == "INT32" else None
        signs, layer = bits.get(tensor, words), _layer(tensor.name)
        # A source that is a conversion too has the tensor itself, perhaps; else it has the layer's.
        names = [name for name in (tensor.name, layer) if name not in ambiguous]
        packed = _first(known, names, _BITS) if signs is not None else None
        numbers = _first(known, names, _NUMBERS) if signs is not None or tensor.type in _TYPES_OF_NUMBERS else None
        twin = packed or numbers or (_condition(known, layer) if signs is not None else None)
        if twin is None:
            continue
        turned = () if twin.name == tensor.name else _turned_axes(source, twin, tensor, signs if packed else None)
        suffixes = tensor.name.split(";")[0].removeprefix(layer)  # a source's layer may be called levels, too
        pair = Pair(twin, None, (), tensor, signs, packed is not None, turned)
        if signs is not None and packed is None and LEVELS in suffixes:
            levels = find_levels(source, twin)
            if levels is not None:
                x = moved_in_front(source, levels)
                times = math.prod((*tensor.shape[:-1], signs)) // (math.prod(x.shape) or 1)
                pairs.append(replace(pair, operand=x, levels=levels.thermometer.parts(times)))
            continue
        operand, thresholds = _turning(source, twin) if packed is None else (_packed(source, packed), (0.0,))
        spread = _before_reshapes(source, twin).shape
        pairs.append(replace(pair, operand=operand, thresholds=thresholds, spread=spread))
    rounded = _behind(result, [pair.result for pair in pairs if any(levels.middle != 0 for levels in pair.levels)])
    return [replace(pair, rounds_zero=pair.result in rounded) for pair in pairs]


def computed(graph: Graph) -> list[Tensor]:
    """The outputs of all ops."""
    return [tensor for op in graph.ops for tensor in op.outputs]


def _behind(graph: Graph, levels: list[Tensor]) -> set[Tensor]:
    """What is computed from the sums of levels, as far as to the signs that are taken of it."""
    bits, behind = set(levels), set[Tensor]()
    for op in graph.ops:
        if not bits.isdisjoint(op.inputs):
            (behind if op.name == LCE_BCONV_2D else bits).update(op.outputs)
        elif op.name not in (LCE_BCONV_2D, LCE_DEQUANTIZE) and not behind.isdisjoint(op.inputs):
            behind.update(op.outputs)
    return behind


def _by_name(source: Graph) -> dict[tuple[str, str], Tensor]:
    """Its tensors by name and kind, or by layer and kind; what several are called stands for none of them."""
    bits, ambiguous = channels_of_bits(source), _repeated(source)
    kinds = {
        tensor: _BITS if tensor in bits else _NUMBERS if tensor.type in _TYPES_OF_NUMBERS else tensor.type
        for tensor in computed(source)
        if tensor.name not in ambiguous
    }
    layers = {(_layer(tensor.name), kind): tensor for tensor, kind in kinds.items()}
    return layers | {(tensor.name, kind): tensor for tensor, kind in kinds.items()}


def _first(known: dict[tuple[str, str], Tensor], names: Sequence[str], kind: str) -> Tensor | None:
    return next((known[name, kind] for name in names if (name, kind) in known), None)


def _condition(known: dict[tuple[str, str], Tensor], layer: str) -> Tensor | None:
    """The source's boolean that a layer of the result is the sign of."""
    name, _, kind = layer.rpartition("/")
    return _first(known, [_layer(name)], "BOOL") if kind in (_SIGN, _OPPOSITE) else None


def _repeated(graph: Graph) -> set[str]:
    """The names that several tensors have, as what one pass makes of each of a layer's parts."""
    return {name for name, times in Counter(tensor.name for tensor in computed(graph)).items() if times > 1}


def _packed(graph: Graph, bits: Tensor) -> Tensor | None:
    """The floats whose signs LceQuantize has packed into these bits; None where they are packed from something else."""
    op = graph.producer(bits)
    return op.input(0) if op is not None and op.name == LCE_QUANTIZE and op.input(0).type == "FLOAT32" else None


def _turning(graph: Graph, tensor: Tensor) -> tuple[Tensor, tuple[float | Array, ...]]:
    """What a tensor is the sign of, or takes few numbers by, and where these turn; itself if it is none of floats."""
    decided = _before_reshapes(graph, tensor)
    sign = find_sign(graph, decided)
    if sign is not None and sign.x.type == "FLOAT32":
        return sign.x, (sign.threshold,)
    levels = None if sign is None else find_two_levels(graph, _before_reshapes(graph, sign.x))
    if levels is not None and levels.x.type == "FLOAT32":
        return levels.x, (levels.threshold,)
    steps = steps_of(graph, decided)
    if steps.x is None or steps.x.type != "FLOAT32" or not steps.is_known:
        return tensor, ()
    return steps.x, tuple(steps.edges.tolist())


def _before_reshapes(graph: Graph, tensor: Tensor) -> Tensor:
    """The tensor whose values are flattened, as TensorFlow does with signs and with what it selects them by."""
    while (op := graph.producer(tensor)) is not None and facts(op).reshapes:
        tensor = op.input(0)
    return tensor


def _layer(name: str) -> str:
    """What a tensor of this name is called in any conversion of a model."""
    name = name.split(";")[0]
    while name.endswith(_SUFFIXES):
        name = name.rpartition("/")[0]
    return name


def _turned_axes(source: Graph, tensor: Tensor, result: Tensor, signs: int | None) -> tuple[int, ...]:
    """The axes of a source's tensor that a result may have in another order, as `Pair` holds them.

    Args:
        signs: how many the last axis holds of a source's tensor of bits.
    """
    if _UNTURNED in result.name:
        return tensor.shape if signs is None else (*tensor.shape[:-1], signs)
    if _PERMUTED not in result.name:
        return ()
    flat = tensor.dims
    while (op := source.producer(tensor)) is not None and op.output.dims == flat:
        before = next((x for x in op.inputs if x is not None and not x.is_constant), None)
        if before is None:
            break
        if facts(op).reshapes and len(before.dims) > len(flat):
            return before.shape
        tensor = before
    return ()
