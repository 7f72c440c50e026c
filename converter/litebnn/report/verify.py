"""Runs a source model and its conversion side by side in the installed runtime."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from litebnn.child import run_apart
from litebnn.errors import ConversionError
from litebnn.evaluate.batches import Batch
from litebnn.evaluate.data_set import DataSet
from litebnn.evaluate.recipes import Recipe
from litebnn.evaluate.scoring import Ready, Result
from litebnn.flatbuffer import read_model, read_strictly
from litebnn.graph import Array, Model, check_model, facts
from litebnn.report.divergence import TOLERANCE, Divergence, LayerComparison, by_layer, difference
from litebnn.report.folded_weights import with_folded_weights
from litebnn.report.layers.pairs import computed
from litebnn.report.samples import run, samples_for
from litebnn.runtime.intermediates import interpreter_for
from litebnn.runtime.interpreter import Interpreter
from litebnn.runtime.predictor import arrays_of

# An int8 result's error may have this share of the values' root mean square.
INT8_TOLERANCE = 0.5
_RANDOM_SAMPLES = 2
# What verifying may take, and what more for each sample (a board may need seconds for a large network) and for each
# byte of models and inputs.
_SECONDS, _SECONDS_PER_SAMPLE = 60, 15
_MEMORY, _MEMORY_PER_BYTE = 4 << 30, 8


@dataclass(frozen=True)
class Verification:
    """What running two models side by side has shown.

    Attributes:
        difference: the largest difference of an output, relative to the output's largest value (of an int8 result:
            root mean squares). Where signs that rounding turned move an output by more than `TOLERANCE`, it is that of
            what the result computes of the source's signs.
        samples: how many samples say so.
        turned: the layers whose signs rounding turned, where nothing in front of them differs. Signs that do not
            change the outputs count too.
        in_integers: whether one of the models rounds to integers, so that the outputs alone were compared.
    """

    difference: float
    samples: int
    turned: tuple[Divergence, ...] = ()
    in_integers: bool = False

    def summary(self) -> str:
        """How far the outputs are apart, and what of."""
        if self.in_integers:
            return (
                f"verified, rounding to integers moves the outputs by {self.difference:.1e} of their root mean square "
                f"at most ({INT8_TOLERANCE} passes; litebnn evaluate measures what that costs)"
            )
        return f"verified, the outputs differ by {self.difference:.1e} of their largest value at most"

    def lines(self) -> list[str]:
        """One line for each layer whose signs rounding turned."""
        return [f"rounding in {one.samples} of {self.samples} samples: {one}" for one in self.turned]


def verify_apart(source: bytes, converted: bytes, inputs: Any = None) -> Verification:
    """What `verify_conversion` finds, in another process with limits on time and memory.

    Raises:
        ConversionError: as there, or a model crashes the runtime, or asks for more time or memory than one of its size
            may need.
        ValueError: the inputs are not such as the model takes.
    """
    model = read_model(source)
    samples = _RANDOM_SAMPLES
    if inputs is not None:
        inputs = arrays_of(inputs, model.input_names)
        samples = len(samples_for("verify", model, inputs, count=_RANDOM_SAMPLES))
    size = len(source) + len(converted) + sum(array.nbytes for array in inputs or ())
    found = run_apart(
        "verifying",
        verify_as_dict,
        source,
        converted,
        inputs,
        seconds=_SECONDS + _SECONDS_PER_SAMPLE * samples,
        memory=_MEMORY + _MEMORY_PER_BYTE * size,
    )
    return Verification(**{**found, "turned": tuple(Divergence(**place) for place in found["turned"])})


def verify_as_dict(source: bytes, converted: bytes, inputs: list[Array] | None) -> dict[str, Any]:
    """What `verify_conversion` finds, as JSON can hold it; what a runtime says against a model is of the model."""
    check_model(read_strictly(source))
    try:
        return asdict(verify_conversion(source, converted, inputs))
    except ConversionError:
        raise
    except ValueError as error:
        raise ConversionError(f"the model cannot be verified: {error}") from error


def verify_conversion(
    source: bytes,
    converted: bytes,
    inputs: npt.ArrayLike | Sequence[npt.ArrayLike] | Mapping[str, npt.ArrayLike] | None = None,
) -> Verification:
    """Compares two models: their outputs, and layer by layer where these are not the same to the last bit.

    The source sums floats, the result counts bits: where a value next to zero is rounded to the other side, its sign
    turns over, and all that follows may differ. So each layer of the result is then given the source's signs. Where
    either of the two computes in integers, or quantizes activations when it runs, the result is held to half of the
    values' root mean square only: what int8 loses, it may lose.

    Args:
        source, converted: `.tflite` files with the same inputs and outputs; those of `converted` may be int8.
        inputs: an array, or a list or dictionary with one for each input, batch first; random normal values if None.
    Raises:
        ConversionError: the difference is too large, and the message names the first layer that differs; or there are
            no samples.
    """
    samples = samples_for("verify", read_model(source), inputs, count=_RANDOM_SAMPLES)
    return _of_some(_Comparison(source, converted).compare(samples))


class _Comparison:
    """Two models that are ready to run side by side.

    Raises:
        ConversionError: one of them cannot be run.
    """

    def __init__(self, source: bytes, converted: bytes) -> None:
        source = with_folded_weights("verify", source)
        self._source, self._converted = source, converted
        self.models = interpreter_for("verify", source), interpreter_for("verify", converted)
        self._has_grid = any(
            _rounds(model) or _has_dynamic_range(model) for model in map(read_model, (source, converted))
        )
        self._layers: LayerComparison | None = None

    def compare(self, samples: list[list[Array]]) -> Verification:
        """What samples say.

        Raises:
            ConversionError: the difference is too large.
        """
        if self._has_grid:
            worst = max(_gaps(_relative_error, *self.models, samples))
            if worst > INT8_TOLERANCE:
                raise ConversionError(
                    f"the converted model's outputs are off by {worst:.2g} of their root mean square, "
                    f"expected {INT8_TOLERANCE} at most"
                )
            return Verification(worst, len(samples), in_integers=True)
        gaps: list[float] = []
        found: list[Divergence] = []
        for sample in samples:
            gap = max(_gaps(difference, *self.models, [sample]))
            if gap > 0:
                self._layers = self._layers or LayerComparison("verify", self._source, self._converted)
                place = self._layers.first_divergence(sample)
                if place is not None and place.turned:
                    found.append(place)
                if gap > TOLERANCE:
                    whole, (gap, wrong) = gap, self._layers.given_the_sources_signs(sample)
                    if gap > TOLERANCE or wrong is not None:
                        raise ConversionError(_failure(whole, wrong))
            gaps.append(gap)
        return Verification(max(gaps, default=0.0), len(gaps), by_layer(found))


def _of_some(verification: Verification) -> Verification:
    if not verification.samples:
        raise ConversionError("the model cannot be verified: there are no samples")
    return verification


@dataclass(frozen=True)
class _VerifyBatch:
    """Compares two models on batches."""

    source: bytes
    converted: bytes
    recipe: Recipe

    def prepared(self) -> Callable[[Batch], Result]:
        comparison = _Comparison(self.source, self.converted)
        ready = Ready("the model", comparison.models[0], self.recipe)

        def verify(batch: Batch) -> Result:
            samples = batch.part.load()
            runs = [[one] for one in ready.runs(samples)]
            found = comparison.compare(runs) if runs else Verification(0.0, 0)
            return {**asdict(found), "left_out": [list(each) for each in samples.unreadable]}

        return verify


def verify_data_set(source: bytes, converted: bytes, dataset: DataSet) -> Verification:
    """What `verify_conversion` finds on all samples of a data set, wherever its batches run.

    Raises:
        ConversionError: as there, or a batch cannot be run.
    """
    results = dataset.results("verify", lambda recipe: _VerifyBatch(source, converted, recipe))
    return _of_some(
        Verification(
            max(result["difference"] for result in results),
            sum(result["samples"] for result in results),
            by_layer(Divergence(**place) for result in results for place in result["turned"]),
            any(result["in_integers"] for result in results),
        )
    )


def _rounds(model: Model) -> bool:
    """Whether what ops hand on is rounded to a grid."""
    return any(tensor.type in ("INT8", "INT16") for tensor in computed(model.graphs[0]))


def _has_dynamic_range(model: Model) -> bool:
    """Whether a layer of floats has integer weights, for which it quantizes its input when it runs."""
    layers = (op for op in model.ops() if facts(op).layer)
    return any(op.output.type == "FLOAT32" and op.input(1).type.startswith("INT") for op in layers)


def _failure(gap: float, place: Divergence | None) -> str:
    where = "no layer in front of the outputs differs" if place is None else f"the first layer that differs is {place}"
    return f"the converted model's outputs are off by {gap:.2g} of the largest value; {where}"


def _gaps(
    measure: Callable[[Array, Array], float], source: Interpreter, converted: Interpreter, samples: list[list[Array]]
) -> list[float]:
    """One measure for each output."""
    pairs = zip(run(source, samples), run(converted, samples), strict=True)
    return [measure(expected, actual) for expected, actual in pairs]


def _relative_error(expected: Array, actual: Array) -> float:
    if expected.shape != actual.shape:
        return float("inf")
    error, signal = (np.sqrt(np.mean(np.square(v.astype(np.float64)))) for v in (expected - actual, expected))
    return float(error / signal) if signal else float(error)
