"""Where a source model and its conversion begin to differ, and whether rounding explains it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from litebnn.contract import pack_bits, unpack_bits
from litebnn.flatbuffer import read_model
from litebnn.graph import Array, Model, Tensor, packed_words
from litebnn.report.layers.axes import arrangements, moved, placed
from litebnn.report.layers.pairs import Pair, pairs_of
from litebnn.report.samples import run, samples_for
from litebnn.runtime.intermediates import interpreter_for, with_given, with_outputs
from litebnn.runtime.interpreter import Interpreter

# Float sums in another order differ by less than this, relative to the tensor's largest value.
TOLERANCE = 1e-3
# Rounding may turn a sign whose value is this near to the threshold, relative to the mean distance.
_CLOSE = 1e-4
# It leaves no sum nearer than this to zero: such a value is zero itself, or the number next to it where a sign turns.
_ZERO = float(np.finfo(np.float32).tiny)
# Random samples that tell which channels have the opposite signs.
_SAMPLES = 8


@dataclass(frozen=True)
class Divergence:
    """The first layer in which two models differ, in order of execution.

    Attributes:
        layer: the source's name of the tensor.
        turned: how many of its signs, or of the few numbers that it takes, are others in the result; 0 for a tensor of
            other numbers.
        signs: how many signs it has.
        distance: how far from where the sign turns (zero, or the threshold of a comparison) the farthest of the values
            lies whose sign has turned, in the source; nan where the source has but bits.
        mean_distance: the same of all its values, their mean.
        samples: in how many samples it is the first layer that differs; `turned` and `signs` count all of them.
        difference: of a tensor of numbers the largest difference, relative to the largest value.
        rounds_zero: whether the result rounds a sum, too, that is zero in the source.
    """

    layer: str
    turned: int = 0
    signs: int = 0
    distance: float = 0.0
    mean_distance: float = 0.0
    samples: int = 1
    difference: float = 0.0
    rounds_zero: bool = False

    @property
    def by_rounding(self) -> bool:
        """Whether the signs that turned are those of values so near to zero that rounding decides them.

        If they are all of zero itself, of which the result has exact sums, the models disagree about the sign of that.
        """
        is_decided = self.rounds_zero or self.distance >= _ZERO
        return self.turned > 0 and is_decided and self.distance <= _CLOSE * self.mean_distance

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
            any(one.rounds_zero for one in same),
        )
        for layer, same in layers.items()
    )


def difference(expected: Array, actual: Array) -> float:
    """The largest difference, relative to the largest finite value expected; infinite where the shapes differ."""
    if expected.shape != actual.shape:
        return float("inf")
    return float(np.max(_gaps(expected, actual), initial=0.0))


def _gaps(expected: Array, actual: Array) -> Array:
    """By how much each number differs, relative to the largest finite one expected."""
    left, right = expected.astype(np.float64), actual.astype(np.float64)
    scale = float(np.max(np.abs(left), initial=0.0, where=np.isfinite(left))) or 1.0
    with np.errstate(invalid="ignore"):  # of infinities
        gaps = np.where((left == right) | (np.isnan(left) & np.isnan(right)), 0.0, np.abs(left - right))
    return np.asarray(np.nan_to_num(gaps, nan=np.inf) / scale)


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
        self._pairs = pairs_of(left.graphs[0], right.graphs[0])
        self._outputs = left.graphs[0].outputs
        sources = (tensor for pair in self._pairs for tensor in (pair.source, pair.operand) if tensor is not None)
        self._shown = list(dict.fromkeys((*sources, *self._outputs)))
        self._source = interpreter_for(purpose, with_outputs(left, self._shown))
        self._converted = interpreter_for(purpose, with_outputs(right, [pair.result for pair in self._pairs]))
        self._opposite = self._opposite_channels(purpose, left)
        self._purpose, self._model = purpose, right
        self._given: Interpreter | None = None

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
        values = self._values(sample)
        for pair, actual in zip(self._pairs, run(self._converted, [sample]), strict=True):
            yield from self._differing(pair, values, actual)

    def given_the_sources_signs(self, sample: list[Array]) -> tuple[float, Divergence | None]:
        """What is left of the differences where each layer of the result reads the source's signs and levels.

        So layers are compared behind signs that rounding has turned, too.

        Args:
            sample: an array of the model's own shape for each input.
        Returns:
            the largest difference of an output that is not given, and the first tensor that differs by more than
            rounding; None where none does.
        """
        values = self._values(sample)
        given = {
            pair.result: self._as_the_result_has_it(pair, values, actual)
            for pair, actual in zip(self._pairs, run(self._converted, [sample]), strict=True)
            if self._has_known_signs(pair)
        }
        shown = [pair.result for pair in self._pairs]
        outputs = self._model.graphs[0].outputs
        if self._given is None:
            self._given = interpreter_for(self._purpose, with_given(self._model, given, [*shown, *outputs]))
        results = run(self._given, [[*sample, *given.values()]])
        ends = zip(outputs, self._outputs, results[len(shown) :], strict=True)
        gap = max((difference(values[x], actual) for result, x, actual in ends if result not in given), default=0.0)
        found = (
            place
            for pair, actual in zip(self._pairs, results, strict=False)
            for place in self._differing(pair, values, actual)
        )
        return gap, next((place for place in found if not place.by_rounding), None)

    def _values(self, sample: list[Array]) -> dict[Tensor, Array]:
        """What the source computes."""
        return dict(zip(self._shown, run(self._source, [sample]), strict=True))

    def _differing(self, pair: Pair, values: dict[Tensor, Array], actual: Array) -> Iterator[Divergence]:
        if pair.levels and pair.operand is not None:
            yield from _turned_levels(pair, values[pair.operand], actual)
        elif not pair.is_negated or pair.result in self._opposite:
            operand = None if pair.operand is None else values[pair.operand]
            yield from _differing(pair, values[pair.source], actual, operand, self._opposite.get(pair.result))

    def _has_known_signs(self, pair: Pair) -> bool:
        """Whether the result's signs or few numbers can be made of the source's."""
        if pair.signs is None:
            return len(pair.thresholds) > 0 and pair.source.type == pair.result.type
        return not pair.is_negated or pair.result in self._opposite

    def _as_the_result_has_it(self, pair: Pair, values: dict[Tensor, Array], actual: Array) -> Array:
        """The source's signs or numbers, in the order of axes that fits best; its own where none does."""
        if pair.levels and pair.operand is not None:
            best = _fitting_levels(pair, values[pair.operand], actual)
            return actual if best is None else actual ^ pack_bits(best[0])
        if pair.signs is None:
            source = moved(values[pair.source], actual, pair.turned)
            return actual if source is None else source
        negative, opposite = _negative(pair, values[pair.source]), self._opposite.get(pair.result)
        candidates = (signs for signs in _candidates(pair, negative, actual) if negative.size == signs.size)
        signs = next((x for x in candidates if opposite is None or x.shape[-1] == opposite.size), None)
        flips: Array = np.zeros((), np.bool_) if opposite is None else opposite
        source = None if signs is None else moved(negative, signs ^ flips, pair.turned)
        return actual if source is None else pack_bits(source ^ flips)

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


def _differing(
    pair: Pair, expected: Array, actual: Array, operand: Array | None, opposite: Array | None
) -> Iterator[Divergence]:
    """Where a pair's signs or numbers are others in the result.

    Args:
        opposite: bool [channels] of the result whose signs are negated in some.
    """
    candidates = [actual]
    if pair.signs is not None:
        expected = _negative(pair, expected)
        candidates = _candidates(pair, expected, actual)
    if opposite is not None:
        candidates = [signs ^ opposite for signs in candidates if signs.shape[-1] == opposite.size]
    found = placed(candidates, expected, pair.turned)
    gaps = np.array(np.inf) if found is None else _gaps(expected, found)
    turned = gaps > TOLERANCE
    if found is None or (pair.signs is None and not pair.thresholds):
        if np.any(turned):
            yield Divergence(pair.source.name, difference=float(gaps.max()))
    elif np.any(turned):
        distance = np.full(turned.shape, np.nan)
        if operand is not None:
            distance = np.min([np.abs(operand - threshold) for threshold in pair.thresholds or (0.0,)], axis=0)
            if distance.size < turned.size:
                distance = np.broadcast_to(distance, pair.spread)
            distance = distance.reshape(turned.shape)
        yield _of_turned(pair, turned, distance)


def _turned_levels(pair: Pair, x: Array, actual: Array) -> Iterator[Divergence]:
    """Where the signs of levels are others in the result than x has them in the source."""
    best = _fitting_levels(pair, x, actual)
    if best is None:
        yield Divergence(pair.source.name, difference=float("inf"))
    elif np.any(best[0]):
        yield _of_turned(pair, *best)


def _of_turned(pair: Pair, turned: Array, distance: Array) -> Divergence:
    far, near = float(distance[turned].max()), float(distance.mean())
    return Divergence(pair.source.name, int(turned.sum()), turned.size, far, near, rounds_zero=pair.rounds_zero)


def _fitting_levels(pair: Pair, x: Array, actual: Array) -> tuple[Array, Array] | None:
    """Which signs are others in the result, and how far each value of x is from its threshold, as the result has them.

    That is in the axes, and of the forms that the signs may have, in the one, that fit best.
    """
    assert pair.signs is not None
    signs = unpack_bits(actual, pair.signs)
    shape = (*signs.shape[:-1], signs.shape[-1] // len(pair.levels[0].thresholds))
    forms = [form for levels in pair.levels for form in levels.forms()]
    best: tuple[Array, Array] | None = None
    for values in arrangements(x, shape, pair.turned):
        for form in forms:
            turned = form.signs(values) != signs
            if best is None or np.count_nonzero(turned) < np.count_nonzero(best[0]):
                best = turned, np.concatenate([np.abs(values - threshold) for threshold in form.thresholds], axis=-1)
    return best


def _opposite_signs(pair: Pair, expected: Array, actual: Array) -> Array | None:
    """bool [channels]: which channels of a pair's result have the opposite signs, in the order of axes that fits best.

    None where the result has another number of signs.
    """
    negative, shares = _negative(pair, expected), []
    for signs in _candidates(pair, negative, actual):
        for values in arrangements(negative, signs.shape, pair.turned):
            shares.append((values != signs).reshape(-1, signs.shape[-1]).mean(axis=0))
    best = min(shares, key=lambda share: float(np.minimum(share, 1 - share).mean()), default=None)
    return None if best is None else best > 0.5


def _negative(pair: Pair, expected: Array) -> Array:
    assert pair.signs is not None
    if pair.source.type == "BOOL":
        return expected if pair.is_opposite else ~expected
    return unpack_bits(expected, pair.signs) if pair.is_packed else expected < 0


def _candidates(pair: Pair, negative: Array, actual: Array) -> list[Array]:
    assert pair.signs is not None
    return _unpacked(actual, dict.fromkeys([*reversed(negative.shape), pair.signs]))


def _unpacked(bits: Array, counts: Iterable[int]) -> list[Array]:
    """What bits stand for, if the last axis holds as many signs as one of these numbers."""
    return [unpack_bits(bits, count) for count in counts if packed_words(count) == bits.shape[-1]]
