"""Where a source model and its conversion begin to differ, and whether rounding explains it."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from litebnn.contract import BITS_PER_WORD, LCE_QUANTIZE, unpack_bits
from litebnn.flatbuffer import read_model
from litebnn.graph import Array, Graph, Model, Tensor, facts, packed_words
from litebnn.report.anatomy import channels_of_bits
from litebnn.report.samples import run, samples_for
from litebnn.rewriting.signs import Thermometer, find_levels, find_sign, find_two_levels
from litebnn.rewriting.signs.thermometer_bits import LEVELS, moved_in_front
from litebnn.runtime.intermediates import interpreter_for, with_outputs

# Float sums in another order differ by less than this, relative to the tensor's largest value.
TOLERANCE = 1e-3
# Rounding may turn a sign whose value is this near to the threshold, relative to the mean distance.
_CLOSE = 1e-4
_NUMBERS = ("FLOAT32", "INT8")
# The passes append these to the name of a tensor whose axes they put into another order: a transpose goes behind it, or
# a dense layer takes the features that it flattens as they come.
_UNTURNED, _PERMUTED = "/unturned", "/permuted"
# This they append where some channels of its signs are the opposite ones, as the weights of the layers behind are.
_NEGATED = "/negated"
# The others stand for its bits, for those of its levels, and for itself in front of a reshape.
_SUFFIXES = ("/bits", "/unshaped", _UNTURNED, _PERMUTED, _NEGATED, LEVELS)
# Random samples that tell which channels those are.
_SAMPLES = 8


@dataclass(frozen=True)
class Divergence:
    """The first layer in which two models differ, in order of execution.

    Attributes:
        layer: the source's name of the tensor.
        turned: how many of its signs are others in the result; 0 for a tensor of numbers.
        signs: how many signs it has.
        distance: how far from where the sign turns (zero, or the threshold of a comparison) the farthest of the values
            lies whose sign has turned, in the source; nan where the source has but bits.
        mean_distance: the same of all its values, their mean.
        samples: in how many samples it is the first layer that differs; `turned` and `signs` count all of them.
        difference: of a tensor of numbers the largest difference, relative to the largest value.
    """

    layer: str
    turned: int = 0
    signs: int = 0
    distance: float = 0.0
    mean_distance: float = 0.0
    samples: int = 1
    difference: float = 0.0

    @property
    def by_rounding(self) -> bool:
        """Whether the signs that turned are those of values so near to zero that rounding decides them."""
        return self.turned > 0 and self.distance <= _CLOSE * self.mean_distance

    def __str__(self) -> str:
        if not self.turned:
            return f'"{self.layer}"' + (
                f": off by {self.difference:.1e} of its largest value" if self.difference else ""
            )
        subject = "1 sign of" if self.turned == 1 else f"{self.turned:,} signs of"
        if np.isnan(self.distance):
            return f'"{self.layer}": {subject} {self.signs:,} turned'
        return (
            f'"{self.layer}": {subject} {self.signs:,} turned, at {self.distance:.1e} from the threshold at most '
            f"({self.mean_distance:.1e} on average)"
        )


def by_layer(found: Iterable[Divergence]) -> tuple[Divergence, ...]:
    """One for each layer, of what was found in several samples."""
    layers: dict[str, list[Divergence]] = {}
    for one in found:
        layers.setdefault(one.layer, []).append(one)
    return tuple(
        Divergence(
            layer,
            sum(one.turned for one in same),
            sum(one.signs for one in same),
            max(one.distance for one in same),
            float(np.mean([one.mean_distance for one in same])),
            sum(one.samples for one in same),
            max(one.difference for one in same),
        )
        for layer, same in layers.items()
    )


def difference(expected: Array, actual: Array) -> float:
    """The largest difference, relative to the largest finite value expected; infinite where the shapes differ."""
    if expected.shape != actual.shape:
        return float("inf")
    left, right = expected.astype(np.float64), actual.astype(np.float64)
    scale = float(np.max(np.abs(left), initial=0.0, where=np.isfinite(left))) or 1.0
    with np.errstate(invalid="ignore"):  # of infinities
        gap = np.where((left == right) | (np.isnan(left) & np.isnan(right)), 0.0, np.abs(left - right))
    return float(np.max(np.nan_to_num(gap, nan=np.inf), initial=0.0)) / scale


@dataclass(frozen=True)
class _Pair:
    """A tensor that both models have: of numbers, or of signs that are packed in the result, or in both.

    Attributes:
        operand, threshold: what the source's tensor is the sign of, and where that sign turns; itself and 0 where it
            is no sign of numbers, so that no value of it is near to its threshold; None where it is of bits whose
            operand is not computed.
        signs: how many signs the last axis of the result's tensor holds; None for one of numbers.
        is_packed: whether the source's is of bits too.
        turned: of a tensor whose axes the result may have in another order, what these are in the source, the batch
            first; of one whose features are flattened, what these were before.
        levels: what the signs of the result say of the source's operand, where the source's tensor takes few levels.
    """

    source: Tensor
    operand: Tensor | None
    threshold: float | Array
    result: Tensor
    signs: int | None
    is_packed: bool = False
    turned: tuple[int, ...] = ()
    levels: Thermometer | None = None

    @property
    def is_negated(self) -> bool:
        """Whether the result has the opposite signs in some channels, and only samples tell in which."""
        return _NEGATED in self.result.name and self.levels is None


class LayerComparison:
    """Runs two models side by side, all tensors that both have laid open.

    Args:
        purpose: what for, in messages.
        source, converted: `.tflite` files with the same inputs. Where one of them has bits and the other has not, that
            is `converted`.

    Raises:
        ConversionError: there is no runtime or op library to run them with.
    """

    def __init__(self, purpose: str, source: bytes, converted: bytes) -> None:
        left, right = read_model(source), read_model(converted)
        self._pairs = _pairs(left.graphs[0], right.graphs[0])
        sources = (tensor for pair in self._pairs for tensor in (pair.source, pair.operand) if tensor is not None)
        self._shown = list(dict.fromkeys(sources))
        self._source = interpreter_for(purpose, with_outputs(left, self._shown))
        self._converted = interpreter_for(purpose, with_outputs(right, [pair.result for pair in self._pairs]))
        self._opposite = self._opposite_channels(purpose, left)

    @property
    def layers(self) -> int:
        """How many tensors both models have."""
        return len(self._pairs)

    def first_divergence(self, sample: list[Array]) -> Divergence | None:
        """The first tensor in which the models differ, among those that both have; None where none does.

        Args:
            sample: an array of the model's own shape for each input.
        """
        return next(self.divergences(sample), None)

    def divergences(self, sample: list[Array]) -> Iterator[Divergence]:
        """Every tensor in which the models differ, in the result's order of execution.

        Args:
            sample: an array of the model's own shape for each input.
        """
        if not self._pairs:
            return
        values = dict(zip(self._shown, run(self._source, [sample]), strict=True))
        for pair, actual in zip(self._pairs, run(self._converted, [sample]), strict=True):
            expected = values[pair.source]
            if pair.levels is not None and pair.operand is not None:
                yield from _turned_levels(pair, pair.levels, values[pair.operand], actual)
                continue
            if pair.signs is None:
                placed = _placed([actual], expected, pair.turned)
                gap = float("inf") if placed is None else difference(expected, placed)
                if gap > TOLERANCE:
                    yield Divergence(pair.source.name, difference=gap)
                continue
            if pair.is_negated and pair.result not in self._opposite:
                continue
            turned = _turned_signs(pair, expected, actual, self._opposite.get(pair.result))
            if turned is None:
                yield Divergence(pair.source.name, difference=float("inf"))
                continue
            if np.any(turned):
                far = near = float("nan")
                if pair.operand is not None:
                    distance = np.abs(values[pair.operand] - pair.threshold)
                    if distance.size == turned.size:
                        distance = distance.reshape(turned.shape)
                    distance = np.broadcast_to(distance, turned.shape)
                    far, near = float(distance[turned].max()), float(distance.mean())
                yield Divergence(pair.source.name, int(turned.sum()), turned.size, far, near)

    def _opposite_channels(self, purpose: str, source: Model) -> dict[Tensor, Array]:
        """bool [channels] of the results whose signs are negated in some: most of these are the opposite in samples."""
        negated = [(place, pair) for place, pair in enumerate(self._pairs) if pair.is_negated]
        if not negated:
            return {}
        samples = samples_for(purpose, source, None, count=_SAMPLES)
        values = dict(zip(self._shown, run(self._source, samples), strict=True))
        actual = run(self._converted, samples)
        found = {pair.result: _opposite_signs(pair, values[pair.source], actual[place]) for place, pair in negated}
        return {result: opposite for result, opposite in found.items() if opposite is not None}


def _pairs(source: Graph, result: Graph) -> list[_Pair]:
    """The tensors that both models compute, in the result's order of execution."""
    bits_of_source, bits_of_result = channels_of_bits(source), channels_of_bits(result)
    known = {(_layer(tensor), tensor in bits_of_source): tensor for tensor in computed(source)}
    pairs = []
    for tensor in computed(result):
        words = BITS_PER_WORD * tensor.channels if tensor.type == "INT32" else None
        signs = bits_of_result.get(tensor, words)
        packed = known.get((_layer(tensor), True)) if signs is not None else None
        twin = packed or known.get((_layer(tensor), False))
        numbers = twin is not None and twin.type in _NUMBERS and (signs is not None or tensor.type in _NUMBERS)
        if twin is None or (packed is None and not numbers):
            continue
        turned = _turned_axes(source, twin, tensor)
        suffixes = tensor.name.split(";")[0].removeprefix(_layer(tensor))  # a source's layer may be called levels, too
        if signs is not None and packed is None and LEVELS in suffixes:
            levels = find_levels(source, twin)
            if levels is not None:
                x = moved_in_front(source, levels)
                pairs.append(_Pair(twin, x, 0.0, tensor, signs, turned=turned, levels=levels.thermometer))
            continue
        operand, threshold = _turning(source, twin) if packed is None else (_packed(source, packed), 0.0)
        pairs.append(_Pair(twin, operand, threshold, tensor, signs, packed is not None, turned))
    return pairs


def _packed(graph: Graph, bits: Tensor) -> Tensor | None:
    """The floats whose signs LceQuantize has packed into these bits; None where they are packed from something else."""
    op = graph.producer(bits)
    return op.input(0) if op is not None and op.name == LCE_QUANTIZE and op.input(0).type == "FLOAT32" else None


def _turned_signs(pair: _Pair, expected: Array, actual: Array, opposite: Array | None) -> Array | None:
    """Which signs of a pair's source are others in the result; None where that has another number of them.

    Args:
        opposite: bool [channels] of the result, None where it has negated none.
    """
    negative = _negative(pair, expected)
    candidates = _candidates(pair, negative, actual)
    if opposite is not None:
        candidates = [signs ^ opposite for signs in candidates if signs.shape[-1] == opposite.size]
    signs = _placed(candidates, negative, pair.turned)
    return None if signs is None else negative != signs


def _turned_levels(pair: _Pair, levels: Thermometer, x: Array, actual: Array) -> Iterator[Divergence]:
    """Where the signs of levels are others in the result than x has them in the source.

    That is in the axes, and of the forms that the signs may have, in the one, that fit best.
    """
    assert pair.signs is not None
    signs = unpack_bits(actual, pair.signs)
    shape = (*signs.shape[:-1], signs.shape[-1] // len(levels.thresholds))
    best: tuple[Array, Array] | None = None
    for axes, order in _orders(np.empty(shape), x, pair.turned):
        placed = x.reshape(axes).transpose(order).reshape(shape)
        for form in levels.forms():
            turned = form.signs(placed) != signs
            if best is None or np.count_nonzero(turned) < np.count_nonzero(best[0]):
                best = turned, np.concatenate([np.abs(placed - threshold) for threshold in form.thresholds], axis=-1)
    if best is None:
        yield Divergence(pair.source.name, difference=float("inf"))
    elif np.any(best[0]):
        turned, distance = best
        far, near = float(distance[turned].max()), float(distance.mean())
        yield Divergence(pair.source.name, int(turned.sum()), turned.size, far, near)


def _opposite_signs(pair: _Pair, expected: Array, actual: Array) -> Array | None:
    """bool [channels]: which channels of a pair's result have the opposite signs, in the order of axes that fits best.

    None where the result has another number of signs.
    """
    negative, shares = _negative(pair, expected), []
    for signs in _candidates(pair, negative, actual):
        for axes, order in _orders(signs, negative, pair.turned):
            differs = negative.reshape(axes).transpose(order).reshape(signs.shape) != signs
            shares.append(differs.reshape(-1, signs.shape[-1]).mean(axis=0))
    best = min(shares, key=lambda share: float(np.minimum(share, 1 - share).mean()), default=None)
    return None if best is None else best > 0.5


def _negative(pair: _Pair, expected: Array) -> Array:
    assert pair.signs is not None
    return unpack_bits(expected, pair.signs) if pair.is_packed else expected < 0


def _candidates(pair: _Pair, negative: Array, actual: Array) -> list[Array]:
    assert pair.signs is not None
    return _unpacked(actual, dict.fromkeys([*reversed(negative.shape), pair.signs]))


def _turning(graph: Graph, tensor: Tensor) -> tuple[Tensor, float | Array]:
    """What a tensor is the sign of, and where that turns; itself and 0 where it is no sign of floats."""
    sign = find_sign(graph, _before_reshapes(graph, tensor))
    if sign is None or sign.x.type == "FLOAT32":
        return (tensor, 0.0) if sign is None else (sign.x, sign.threshold)
    levels = find_two_levels(graph, _before_reshapes(graph, sign.x))
    return (tensor, 0.0) if levels is None or levels.x.type != "FLOAT32" else (levels.x, levels.threshold)


def _before_reshapes(graph: Graph, tensor: Tensor) -> Tensor:
    """The tensor whose values are flattened, as TensorFlow does with signs and with what it selects them by."""
    while (op := graph.producer(tensor)) is not None and facts(op).reshapes:
        tensor = op.input(0)
    return tensor


def _layer(tensor: Tensor) -> str:
    """What a tensor is called in any conversion of a model."""
    name = tensor.name.split(";")[0]
    while name.endswith(_SUFFIXES):
        name = name.rpartition("/")[0]
    return name


def _unpacked(bits: Array, counts: Iterable[int]) -> list[Array]:
    """What bits stand for, if the last axis holds as many signs as one of these numbers."""
    return [unpack_bits(bits, count) for count in counts if packed_words(count) == bits.shape[-1]]


def _turned_axes(source: Graph, tensor: Tensor, result: Tensor) -> tuple[int, ...]:
    """The axes of a source's tensor that a result may have in another order, as `_Pair` holds them."""
    if _UNTURNED in result.name:
        return tensor.shape
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


def _placed(candidates: Iterable[Array], expected: Array, turned: tuple[int, ...]) -> Array | None:
    """One of these tensors in the shape of the source's, None where none has as many values.

    Args:
        turned: as `_Pair` holds it; of all orders of these axes that is taken in which the values are nearest.
    """
    found = [
        values.reshape([axes[axis] for axis in order]).transpose(np.argsort(order)).reshape(expected.shape)
        for values in candidates
        for axes, order in _orders(values, expected, turned)
    ]
    if len(found) == 1:
        return found[0]
    numbers = expected.astype(np.float64)
    return min(found, key=lambda values: float(np.nansum(np.abs(values - numbers))), default=None)


def _orders(
    values: Array, expected: Array, turned: tuple[int, ...]
) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
    """The axes of the source's tensor, and the orders in which a result of as many values may have them."""
    if values.size != expected.size:
        return
    if len(turned) < 2:  # an axis of one may have moved
        yield expected.shape, tuple(range(expected.ndim))
        return
    axes = (expected.shape[0], *turned[1:])
    for order in itertools.permutations(range(len(axes))):
        shape = tuple(axes[axis] for axis in order)
        if _sizes(values.shape) == _sizes(shape) or (values.ndim < len(axes) and order[0] == 0):
            yield axes, order


def _sizes(shape: Iterable[int]) -> list[int]:
    """A shape without its axes of one, which may be anywhere."""
    return [size for size in shape if size != 1]


def computed(graph: Graph) -> list[Tensor]:
    """The outputs of all ops."""
    return [tensor for op in graph.ops for tensor in op.outputs]
