"""Finds the first layer in which a source model and its conversion differ, and decides if rounding explains the
difference.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from litebnn.flatbuffer import read_model
from litebnn.graph import Array, Graph, Tensor, read_origins
from litebnn.rules.build.signs import moved_source
from litebnn.runtime.intermediates import interpreter_for, with_given, with_outputs
from litebnn.runtime.interpreter import Interpreter
from litebnn.verify.pairs import Pair, pairs_of
from litebnn.verify.samples import run
from litebnn.verify.upstream import jump_of, where_computed

# The largest difference that a different order of additions makes to float sums, relative to the tensor's largest
# value.
TOLERANCE = 1e-3
# Rounding may flip a sign whose value is within this distance from the threshold. The distance is relative to the mean
# distance of all values of the tensor from their thresholds.
_CLOSE = 1e-4
# A value counts as equal to its sign's threshold if they differ by at most this number, the least normal float32. Two
# different floats that are not near zero are farther apart.
_ZERO = float(np.finfo(np.float32).tiny)


@dataclass(frozen=True)
class Divergence:
    """The first layer in which two models differ, in order of execution."""

    # The name that the first differing tensor has in the source model.
    layer: str
    # The number of signs or activation levels in the first differing tensor that differ between the models. It is 0 if
    # the tensor has numbers of another kind.
    flipped: int = 0
    # The number of all signs or activation levels in the first differing tensor; 0 if it has other numbers.
    signs: int = 0
    # The largest distance of a source model's value from its threshold, among the values whose sign differs in the
    # converted model. It is nan if the source model has only bits.
    distance: float = 0.0
    # In the source model, the mean distance of all values of the differing tensor from their thresholds.
    mean_distance: float = 0.0
    # The number of samples in which this layer is the first one to differ. `flipped` and `signs` are sums over these
    # samples.
    samples: int = 1
    # The largest difference of the tensor's numbers, relative to the largest number. It is 0 for signs and activation
    # levels.
    difference: float = 0.0
    # True if rounding in the converted model may flip the sign of sums that are zero in the source.
    rounds_zero: bool = False

    @property
    def by_rounding(self) -> bool:
        """True if all flipped signs belong to values so close to the threshold that rounding decides them.

        If all these values are exactly zero and the sums of the converted model are exact, the models disagree about
        the sign of zero. Rounding does not explain such a difference.
        """
        is_decided = self.rounds_zero or self.distance > _ZERO
        return self.flipped > 0 and is_decided and self.distance <= _CLOSE * self.mean_distance

    def __str__(self) -> str:
        if not self.flipped:
            return f'"{self.layer}"' + (
                f": off by {self.difference:.1e} of its largest value" if self.difference else ""
            )
        subject = "1 sign of" if self.flipped == 1 else f"{self.flipped:,} signs of"
        if np.isnan(self.distance):
            return f'"{self.layer}": {subject} {self.signs:,} flipped'
        return (
            f'"{self.layer}": {subject} {self.signs:,} flipped, at {self.distance:.1e} from the threshold at most '
            f"({self.mean_distance:.1e} on average)"
        )


def by_layer(found: Iterable[Divergence]) -> tuple[Divergence, ...]:
    """Merges the divergences of several samples into one for each layer."""
    layers: dict[str, list[Divergence]] = {}
    for one in found:
        layers.setdefault(one.layer, []).append(one)
    return tuple(
        Divergence(
            layer,
            sum(one.flipped for one in same),
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
    """The largest difference, relative to the largest finite expected value; infinite if the shapes differ."""
    if expected.shape != actual.shape:
        return float("inf")
    return float(np.max(_gaps(expected, actual), initial=0.0))


def _gaps(expected: Array, actual: Array) -> Array:
    """The difference of each number, relative to the largest finite number that is expected."""
    left, right = expected.astype(np.float64), actual.astype(np.float64)
    scale = float(np.max(np.abs(left), initial=0.0, where=np.isfinite(left))) or 1.0
    with np.errstate(invalid="ignore"):  # infinities may be subtracted
        gaps = np.where((left == right) | (np.isnan(left) & np.isnan(right)), 0.0, np.abs(left - right))
    return np.asarray(np.nan_to_num(gaps, nan=np.inf) / scale)


class LayerComparison:
    """Runs a source model and its conversion side by side. Each tensor that both models compute becomes an output of
    both, so that its values can be compared.

    Args:
        purpose: the purpose of the comparison, for messages.
        source, converted: `.tflite` files with the same inputs. If only one of them has bits, it must be `converted`.

    Raises:
        ConversionError: there is no runtime or op library that can run the models.
    """

    def __init__(self, purpose: str, source: bytes, converted: bytes) -> None:
        left, right = read_model(source), read_model(converted)
        for model in (left, right):
            read_origins(model)
        graph = left.graphs[0]
        self._pairs = [
            _measured_upstream(graph, _with_operand(graph, pair)) for pair in pairs_of(graph, right.graphs[0])
        ]
        self._outputs = graph.outputs
        sources = (tensor for pair in self._pairs for tensor in (pair.source.tensor, pair.operand))
        self._shown = list(dict.fromkeys(tensor for tensor in (*sources, *self._outputs) if tensor is not None))
        self._source = interpreter_for(purpose, with_outputs(left, self._shown))
        self._converted = interpreter_for(purpose, with_outputs(right, [pair.result.tensor for pair in self._pairs]))
        self._purpose, self._model = purpose, right
        self._given: Interpreter | None = None

    @property
    def layers(self) -> int:
        """The number of tensors that both models compute."""
        return len(self._pairs)

    def first_divergence(self, sample: list[Array]) -> Divergence | None:
        """The first common tensor in which the models differ; None if they do not differ.

        Args:
            sample: for each input of the models, an array of that input's shape.
        """
        return next(self.divergences(sample), None)

    def divergences(self, sample: list[Array]) -> Iterator[Divergence]:
        """Yields every tensor in which the models differ, in the order in which the converted model computes them.

        Args:
            sample: for each input of the models, an array of that input's shape.
        """
        if not self._pairs:
            return
        values = self._values(sample)
        for pair, actual in zip(self._pairs, run(self._converted, [sample]), strict=True):
            yield from _differing(pair, values, actual)

    def given_the_sources_signs(self, sample: list[Array]) -> tuple[float, Divergence | None]:
        """Compares the models again, but gives each layer of the converted model the source model's signs and
        activation levels as inputs.

        Then a sign that rounding flipped in one layer does not affect the comparison of later layers.

        Args:
            sample: for each input of the models, an array of that input's shape.
        Returns:
            The largest difference of a computed output, and the first tensor that differs by more than rounding; None
            if there is no such tensor.
        """
        values = self._values(sample)
        given = {
            pair.result.tensor: _as_the_result_has_it(pair, values, actual)
            for pair, actual in zip(self._pairs, run(self._converted, [sample]), strict=True)
            if _has_known_signs(pair)
        }
        shown = [pair.result.tensor for pair in self._pairs]
        outputs = self._model.graphs[0].outputs
        if self._given is None:
            self._given = interpreter_for(self._purpose, with_given(self._model, given, [*shown, *outputs]))
        results = run(self._given, [[*sample, *given.values()]])
        ends = zip(outputs, self._outputs, results[len(shown) :], strict=True)
        gap = max((difference(values[x], actual) for result, x, actual in ends if result not in given), default=0.0)
        found = (
            divergence
            for pair, actual in zip(self._pairs, results, strict=False)
            for divergence in _differing(pair, values, actual)
        )
        return gap, next((divergence for divergence in found if not divergence.by_rounding), None)

    def _values(self, sample: list[Array]) -> dict[Tensor, Array]:
        """Runs the source and returns the values of its tensors."""
        return dict(zip(self._shown, run(self._source, [sample]), strict=True))


def _with_operand(graph: Graph, pair: Pair) -> Pair:
    """If a pair of corresponding tensors holds activation levels, returns the pair with another `operand`. This operand
    is the source model's tensor from which the levels are computed, in the layout of the levels. Ops that change the
    layout are added to the graph.
    """
    return pair if pair.levels is None else replace(pair, operand=moved_source(graph, pair.levels))


def _measured_upstream(graph: Graph, pair: Pair) -> Pair:
    """Returns the pair with the operand and the thresholds before all clamps and scales that lead to the signs or
    levels."""
    operand, thresholds = pair.operand, pair.thresholds
    if operand is not None and (pair.is_of_signs or thresholds):
        operand, thresholds = where_computed(graph, operand, thresholds or (0.0,))
    elif (jump := jump_of(graph, pair.source.tensor)) is not None:
        operand, thresholds = jump
    return replace(pair, operand=operand, thresholds=thresholds)


def _has_known_signs(pair: Pair) -> bool:
    """True if the source model has the values from which the signs or activation levels of the converted model can be
    computed."""
    is_alike = pair.source.tensor.type == pair.result.tensor.type
    return pair.result.origin.signs > 0 or (len(pair.thresholds) > 0 and is_alike)


def _as_the_result_has_it(pair: Pair, values: dict[Tensor, Array], actual: Array) -> Array:
    """The values that the source model gives for a tensor of the converted model, in the layout of this tensor. If the
    shapes do not fit, `actual`, the values that the converted model computes."""
    try:
        restored = pair.result.restored(actual)
        made = pair.result.made(pair.expected(values[pair.source.tensor]).reshape(restored.shape))
        return made.reshape(actual.shape)
    except ValueError:
        return actual


def _differing(pair: Pair, values: dict[Tensor, Array], actual: Array) -> Iterator[Divergence]:
    """Yields a divergence if the values of the pair's two tensors differ."""
    name = pair.source.origin.source
    try:
        expected = pair.expected(values[pair.source.tensor])
        found = pair.result.restored(actual).reshape(expected.shape)
    except ValueError:
        yield Divergence(name, difference=float("inf"))
        return
    gaps = _gaps(expected, found)
    flipped = gaps > TOLERANCE
    if not np.any(flipped):
        return
    if not pair.is_of_signs and not pair.thresholds:
        yield Divergence(name, difference=float(gaps.max()))
        return
    distance = np.full(flipped.shape, np.nan)
    if pair.operand is not None:
        operand = values[pair.operand]
        distance = np.min([np.abs(operand - threshold) for threshold in pair.thresholds or (0.0,)], axis=0)
        if pair.source.origin.signs:
            distance = pair.source.origin.layout.restored(distance)
        elif distance.size < flipped.size:
            distance = np.broadcast_to(distance, pair.spread)
        distance = distance.reshape(flipped.shape)
    far, near = float(distance[flipped].max()), float(distance.mean())
    yield Divergence(name, int(flipped.sum()), flipped.size, far, near, rounds_zero=pair.rounds_zero)
