"""Runs a source model and its conversion side by side in the installed runtime."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from litebnn.analysis.grids import Range
from litebnn.child import run_apart
from litebnn.errors import ConversionError
from litebnn.flatbuffer import read_model, read_strictly
from litebnn.graph import Array, Model, check_model, facts
from litebnn.report.differences.divergence import TOLERANCE, Divergence, LayerComparison, by_layer, difference
from litebnn.report.differences.pairs import computed
from litebnn.report.differences.samples import run, samples_for
from litebnn.report.folded_weights import with_folded_weights
from litebnn.runtime.intermediates import interpreter_for
from litebnn.runtime.interpreter import Interpreter

# The largest allowed error of an int8 result, relative to the values' root mean square.
INT8_TOLERANCE = 0.5
_RANDOM_SAMPLES = 2
# The time limit of a verification in seconds: a fixed part, and a part for each sample. A board may need seconds for a
# large network.
_SECONDS, _SECONDS_PER_SAMPLE = 60, 15
_MEMORY, _MEMORY_PER_BYTE = 4 << 30, 8


@dataclass(frozen=True)
class Verification:
    """The result of running two models side by side."""

    # The largest difference of an output, relative to the output's largest value (for int8, relative to the root mean
    # square). If flipped signs change an output by more than `TOLERANCE`, the difference is measured again. Each
    # layer of the converted model then reads the source's signs.
    difference: float
    # The number of samples that were compared.
    samples: int
    # The layers in which rounding flipped signs, although both models' inputs of the layer were equal. Signs that do
    # not change the outputs are included.
    flipped: tuple[Divergence, ...] = ()
    # True if only the outputs were compared, because one of the models rounds to integers.
    in_integers: bool = False

    def summary(self) -> str:
        """One line of text with the difference of the outputs. It also says to which value the difference is
        relative.
        """
        if self.in_integers:
            return (
                f"verified, rounding to integers moves the outputs by {self.difference:.1e} of their root mean square "
                f"at most ({INT8_TOLERANCE} passes; litebnn evaluate measures what that costs)"
            )
        return f"verified, the outputs differ by {self.difference:.1e} of their largest value at most"

    def lines(self) -> list[str]:
        """One line for each layer whose signs rounding flipped."""
        return [f"rounding in {one.samples} of {self.samples} samples: {one}" for one in self.flipped]


def verify_apart(
    source: bytes, converted: bytes, inputs: list[Array] | None = None, limits: Range | None = None
) -> Verification:
    """Runs `verify_conversion` in another process with limits on time and memory.

    Raises:
        ConversionError: `verify_conversion` found a difference, or a model crashes the runtime or exceeds a limit.
        ValueError: the inputs do not match the models' inputs.
    """
    model = read_model(source)
    samples = _RANDOM_SAMPLES
    if inputs is not None:
        samples = len(samples_for("verify", model, inputs, count=_RANDOM_SAMPLES))
    size = len(source) + len(converted) + sum(array.nbytes for array in inputs or ())
    found = run_apart(
        "verifying",
        verify_as_dict,
        source,
        converted,
        inputs,
        limits,
        seconds=_SECONDS + _SECONDS_PER_SAMPLE * samples,
        memory=_MEMORY + _MEMORY_PER_BYTE * size,
    )
    return Verification(**{**found, "flipped": tuple(Divergence(**divergence) for divergence in found["flipped"])})


def verify_as_dict(
    source: bytes, converted: bytes, inputs: list[Array] | None, limits: Range | None = None
) -> dict[str, Any]:
    """The verification in a form that JSON can hold. A runtime's error becomes a ConversionError about the model."""
    check_model(read_strictly(source))
    try:
        return asdict(verify_conversion(source, converted, inputs, limits))
    except ConversionError:
        raise
    except ValueError as error:
        raise ConversionError(f"the model cannot be verified: {error}") from error


def verify_conversion(
    source: bytes, converted: bytes, inputs: list[Array] | None = None, limits: Range | None = None
) -> Verification:
    """Compares two models: their outputs, and each layer if the outputs do not have the same bits.

    The source sums floats, while the result counts bits. A value close to zero may be rounded to the other side, which
    flips its sign and may change all values after it. In that case each layer of the result is given the source's
    signs. If a model computes in integers, or quantizes activations at run time, the tolerance is half of the values'
    root mean square. Int8 may lose that much.

    `source` and `converted` are `.tflite` files with the same inputs and outputs. Inputs and outputs of `converted` may
    be int8. `inputs` has an array for each input, batch first; random values if it is None. `limits` is the (min, max)
    of uniform random values; they are normally distributed if it is None.

    Raises:
        ConversionError: the difference is too large, or there are no samples. The message names the first layer that
            differs.
    """
    samples = samples_for("verify", read_model(source), inputs, count=_RANDOM_SAMPLES, limits=limits)
    return of_some(SideBySide(source, converted).compare(samples))


class SideBySide:
    """Makes two models ready to run side by side.

    Raises:
        ConversionError: one of the models cannot be run.
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
        """Compares the models on samples.

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
                divergence = self._layers.first_divergence(sample)
                if divergence is not None and divergence.flipped:
                    found.append(divergence)
                if gap > TOLERANCE:
                    whole, (gap, wrong) = gap, self._layers.given_the_sources_signs(sample)
                    if gap > TOLERANCE or wrong is not None:
                        raise ConversionError(_failure(whole, wrong))
            gaps.append(gap)
        return Verification(max(gaps, default=0.0), len(gaps), by_layer(found))


def of_some(verification: Verification) -> Verification:
    """Returns the verification, unless it compared no samples.

    Raises:
        ConversionError: the verification compared no samples.
    """
    if not verification.samples:
        raise ConversionError("the model cannot be verified: there are no samples")
    return verification


def _rounds(model: Model) -> bool:
    """True if outputs of ops are quantized in the model."""
    return any(tensor.type in ("INT8", "INT16") for tensor in computed(model.graphs[0]))


def _has_dynamic_range(model: Model) -> bool:
    """True if the model has a float layer with integer weights. A layer with integer weights quantizes its float input
    at run time.
    """
    layers = (op for op in model.ops() if facts(op).layer)
    return any(op.output.type == "FLOAT32" and op.input(1).type.startswith("INT") for op in layers)


def _failure(gap: float, divergence: Divergence | None) -> str:
    where = (
        "no layer in front of the outputs differs"
        if divergence is None
        else f"the first layer that differs is {divergence}"
    )
    return f"the converted model's outputs are off by {gap:.2g} of the largest value; {where}"


def _gaps(
    measure: Callable[[Array, Array], float], source: Interpreter, converted: Interpreter, samples: list[list[Array]]
) -> list[float]:
    """The difference between the source and the converted model in each output. `measure` computes it, relative to the
    output's largest value or to its root mean square.
    """
    pairs = zip(run(source, samples), run(converted, samples), strict=True)
    return [measure(expected, actual) for expected, actual in pairs]


def _relative_error(expected: Array, actual: Array) -> float:
    if expected.shape != actual.shape:
        return float("inf")
    error, signal = (np.sqrt(np.mean(np.square(v.astype(np.float64)))) for v in (expected - actual, expected))
    return float(error / signal) if signal else float(error)
