"""Where a source model and its conversion begin to differ, and whether rounding explains it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from litebnn.contract import unpack_bits
from litebnn.flatbuffer import read_model
from litebnn.graph import Array, Graph, Tensor
from litebnn.rewriting.signs import find_sign
from litebnn.runtime.intermediates import interpreter_for, with_outputs
from litebnn.runtime.predictor import arrays_of

# Float sums in another order differ by less than this, relative to the tensor's largest value.
TOLERANCE = 1e-3
# Rounding may turn a sign whose value is this near to the threshold, relative to the mean distance.
_CLOSE = 1e-4
# The passes append this to a sign's name for its bits.
_BITS = "/bits"


@dataclass(frozen=True)
class Divergence:
    """The first layer in which two models differ, in order of execution.

    Attributes:
        layer: the source's name of the tensor.
        turned: how many of its signs are others in the result; 0 for a tensor of numbers.
        signs: how many signs it has.
        distance: how far from where the sign turns (zero, or the threshold of a comparison) the farthest of the values
            lies whose sign has turned, in the source.
        mean_distance: the same of all its values, their mean.
        samples: in how many samples it is the first layer that differs; `turned` and `signs` count all of them.
    """

    layer: str
    turned: int = 0
    signs: int = 0
    distance: float = 0.0
    mean_distance: float = 0.0
    samples: int = 1

    @property
    def by_rounding(self) -> bool:
        """Whether the signs that turned are those of values so near to zero that rounding decides them."""
        return self.turned > 0 and self.distance <= _CLOSE * self.mean_distance

    def __str__(self) -> str:
        if not self.turned:
            return f'"{self.layer}"'
        subject = "1 sign of" if self.turned == 1 else f"{self.turned:,} signs of"
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
        )
        for layer, same in layers.items()
    )


def difference(expected: Array, actual: Array) -> float:
    """The largest difference, relative to the largest expected value; infinite where the shapes differ."""
    if expected.shape != actual.shape:
        return float("inf")
    left, right = expected.astype(np.float64), actual.astype(np.float64)
    scale = float(np.max(np.abs(left), initial=0.0)) or 1.0
    gap = np.where((left == right) | (np.isnan(left) & np.isnan(right)), 0.0, np.abs(left - right))
    return float(np.max(np.nan_to_num(gap, nan=np.inf), initial=0.0)) / scale


@dataclass(frozen=True)
class _Pair:
    """A tensor that both models have: of numbers, or of signs that are packed in the result.

    Attributes:
        operand, threshold: what the source's tensor is the sign of, and where that sign turns; itself and 0 where it
            is no sign of numbers, so that no value of it is near to its threshold.
    """

    source: Tensor
    operand: Tensor
    threshold: float | Array
    result: Tensor


class LayerComparison:
    """Runs two models side by side, all tensors that both have laid open.

    Args:
        source, converted: `.tflite` files with the same inputs; the result's tensors are not int8.

    Raises:
        ConversionError: there is no runtime or op library to run them with.
    """

    def __init__(self, source: bytes, converted: bytes) -> None:
        left, right = read_model(source), read_model(converted)
        self._pairs = _pairs(left.graphs[0], right.graphs[0])
        self._shown = list(dict.fromkeys(tensor for pair in self._pairs for tensor in (pair.source, pair.operand)))
        self._source = interpreter_for("verify", with_outputs(left, self._shown))
        self._converted = interpreter_for("verify", with_outputs(right, [pair.result for pair in self._pairs]))

    def first_divergence(self, sample: list[Array]) -> Divergence | None:
        """The first tensor in which the models differ, among those that both have; None where none does.

        Args:
            sample: an array of the model's own shape for each input.
        """
        values = dict(zip(self._shown, arrays_of(self._source.predict(sample)), strict=True))
        results = arrays_of(self._converted.predict(sample))
        for pair, actual in zip(self._pairs, results, strict=True):
            expected, operand = values[pair.source], values[pair.operand]
            if pair.result.type == "FLOAT32":
                if difference(expected, actual) > TOLERANCE:
                    return Divergence(pair.source.name)
                continue
            turned = (expected < 0) != unpack_bits(actual, expected.shape[-1])
            if np.any(turned):
                distance = np.broadcast_to(np.abs(operand - pair.threshold), turned.shape)
                numbers = int(turned.sum()), turned.size, float(distance[turned].max()), float(distance.mean())
                return Divergence(pair.source.name, *numbers)
        return None


def _pairs(source: Graph, result: Graph) -> list[_Pair]:
    """The tensors that both models compute, in the result's order of execution."""
    known = {tensor.name.split(";")[0]: tensor for tensor in computed(source)}
    pairs = []
    for tensor in computed(result):
        twin = known.get(tensor.name.split(";")[0].removesuffix(_BITS))
        if twin is not None and twin.type == "FLOAT32" and tensor.type in ("FLOAT32", "INT32"):
            sign = find_sign(source, twin)
            if sign is None or sign.x.type != "FLOAT32":
                pairs.append(_Pair(twin, twin, 0.0, tensor))
            else:
                pairs.append(_Pair(twin, sign.x, sign.threshold, tensor))
    return pairs


def computed(graph: Graph) -> list[Tensor]:
    """The outputs of all ops."""
    return [tensor for op in graph.ops for tensor in op.outputs]
