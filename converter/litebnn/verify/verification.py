"""Runs a source model and its conversion side by side in the installed runtime."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

import numpy as np

from litebnn.analysis.quantization import Range
from litebnn.errors import ConversionError
from litebnn.flatbuffer import read_model, read_strictly
from litebnn.graph import Array, Model, facts
from litebnn.runtime.intermediates import interpreter_for, with_outputs
from litebnn.runtime.interpreter import Interpreter
from litebnn.runtime.isolated import run_apart
from litebnn.safety import check_model
from litebnn.verify.divergence import TOLERANCE, Divergence, LayerComparison, by_layer, difference
from litebnn.verify.exact_zeros import Assumed, ExactZeros, by_sign, counted, in_words, tensors_of
from litebnn.verify.folded_weights import with_folded_weights
from litebnn.verify.pairs import computed
from litebnn.verify.samples import run, samples_for

# The largest allowed error of an int8 result, relative to the values' root mean square.
INT8_TOLERANCE = 0.5
_RANDOM_SAMPLES = 2
# The time limit of a verification in seconds: a fixed part, and a part for each sample. A board may need seconds for a
# large network.
_SECONDS, _SECONDS_PER_SAMPLE = 60, 15
_MEMORY, _MEMORY_PER_BYTE = 4 << 30, 8


class DifferenceError(ConversionError):
    """The converted model computes something else than its source."""


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
    # For each sign that `assume_nonzero` takes for +1 at 0, the number of its inputs that were exactly 0.
    exact_zeros: tuple[ExactZeros, ...] = ()
    # The largest change of an output by what `assume_nonzero` assumes, relative to the output's largest value.
    assumed: float = 0.0

    def summary(self) -> str:
        """One line of text with the difference of the outputs. It also says to which value the difference is
        relative, and how often `assume_nonzero` did not hold.
        """
        if self.in_integers:
            text = (
                f"verified, rounding to integers moves the outputs by {self.difference:.1e} of their root mean square "
                f"at most ({INT8_TOLERANCE} passes; litebnn evaluate measures what that costs)"
            )
        else:
            text = f"verified, the outputs differ by {self.difference:.1e} of their largest value at most"
        parts = [text, in_words(self.exact_zeros)]
        if self.assumed:
            parts.append(f"what assume_nonzero assumes moves the source's outputs by {self.assumed:.1e}")
        return "; ".join([*filter(None, parts), *(f"warning: {line}" for line in self.warnings())])

    def warnings(self) -> list[str]:
        """One line for each sign whose inputs are often exactly 0."""
        return [str(one) for one in self.exact_zeros if one.are_common]

    def lines(self) -> list[str]:
        """One line for each sign whose inputs were exactly 0, and for each layer whose signs rounding flipped."""
        zeros = [str(one) for one in self.exact_zeros if one.zeros and not one.are_common]
        return [*zeros, *(f"rounding in {one.samples} of {self.samples} samples: {one}" for one in self.flipped)]


def as_verification(found: dict[str, Any]) -> Verification:
    """The verification of which `found` is the form for JSON, with or without further entries."""
    known = {field.name: found[field.name] for field in fields(Verification)}
    lists = {
        "flipped": tuple(Divergence(**one) for one in found["flipped"]),
        "exact_zeros": tuple(ExactZeros(**one) for one in found["exact_zeros"]),
    }
    return Verification(**{**known, **lists})


def joined(parts: Sequence[Verification]) -> Verification:
    """The verification on all samples of several ones."""
    return Verification(
        max((part.difference for part in parts), default=0.0),
        sum(part.samples for part in parts),
        by_layer(one for part in parts for one in part.flipped),
        any(part.in_integers for part in parts),
        by_sign(one for part in parts for one in part.exact_zeros),
        max((part.assumed for part in parts), default=0.0),
    )


def verify_apart(
    source: bytes,
    converted: bytes,
    inputs: list[Array] | None = None,
    limits: Range | None = None,
    assumed: Assumed | None = None,
) -> Verification:
    """Runs `verify_conversion` in another process with limits on time and memory.

    Raises:
        DifferenceError: `verify_conversion` found a difference.
        ConversionError: the models cannot be compared, a model crashes the runtime, or exceeds a limit.
        ValueError: the inputs do not match the models' inputs.
    """
    samples = _RANDOM_SAMPLES
    if inputs is not None:
        samples = len(samples_for("verify", read_model(source), inputs, count=_RANDOM_SAMPLES))
    size = len(source) + len(converted) + sum(array.nbytes for array in inputs or ())
    found = run_apart(
        "verifying",
        verify_as_dict,
        source,
        converted,
        inputs,
        limits,
        assumed,
        seconds=_SECONDS + _SECONDS_PER_SAMPLE * samples,
        memory=_MEMORY + _MEMORY_PER_BYTE * size,
    )
    if "difference_found" in found:
        raise DifferenceError(found["difference_found"])
    return as_verification(found)


def verify_as_dict(
    source: bytes,
    converted: bytes,
    inputs: list[Array] | None,
    limits: Range | None = None,
    assumed: Assumed | None = None,
) -> dict[str, Any]:
    """The verification in a form that JSON can hold; for a difference, only its description. A runtime's error becomes
    a ConversionError about the model.
    """
    check_model(read_strictly(source))
    try:
        return asdict(verify_conversion(source, converted, inputs, limits, assumed))
    except DifferenceError as error:
        return {"difference_found": str(error)}
    except ConversionError:
        raise
    except ValueError as error:
        raise ConversionError(f"the model cannot be verified: {error}") from error


def verify_conversion(
    source: bytes,
    converted: bytes,
    inputs: list[Array] | None = None,
    limits: Range | None = None,
    assumed: Assumed | None = None,
) -> Verification:
    """Compares two models: their outputs, and each layer if the outputs do not have the same bits.

    The source sums floats, while the result counts bits. A value close to zero may be rounded to the other side, which
    flips its sign and may change all values after it. In that case each layer of the result is given the source's
    signs. If a model computes in integers, or quantizes activations at run time, the tolerance is half of the values'
    root mean square. Int8 may lose that much.

    `source` and `converted` are `.tflite` files with the same inputs and outputs. Inputs and outputs of `converted` may
    be int8. `inputs` has an array for each input, batch first; random values if it is None. `limits` is the (min, max)
    of uniform random values; they are normally distributed if it is None. `assumed` is what `assume_nonzero` makes of
    the source, if the conversion has that option.

    Raises:
        DifferenceError: the difference is too large. The message names the first layer that differs.
        ConversionError: rounding to integers moves the outputs too far, a model cannot be run, or there are no samples.
    """
    samples = samples_for("verify", read_model(source), inputs, count=_RANDOM_SAMPLES, limits=limits)
    return of_some(SideBySide(source, converted, assumed).compare(samples))


class SideBySide:
    """Makes two models ready to run side by side.

    Args:
        source, converted: the `.tflite` files.
        assumed: the source as `assume_nonzero` takes it. If it is given, the converted model is compared with it
            rather than with `source`.

    Raises:
        ConversionError: one of the models cannot be run.
    """

    def __init__(self, source: bytes, converted: bytes, assumed: Assumed | None = None) -> None:
        self._exact, self._signs = source, () if assumed is None else assumed.signs
        self._has_zero_weights = assumed is not None and assumed.zero_weights > 0
        self._source = with_folded_weights("verify", source if assumed is None else assumed.source)
        self._converted = converted
        model = read_model(self._source)
        self._outputs = len(model.graphs[0].outputs)
        shown = [*model.graphs[0].outputs, *tensors_of(model, self._signs)]
        observed = with_outputs(model, shown) if self._signs else self._source
        self.models = interpreter_for("verify", observed), interpreter_for("verify", converted)
        self._has_grid = any(
            _rounds(model) or _has_dynamic_range(model) for model in map(read_model, (source, converted))
        )
        self._layers: LayerComparison | None = None
        self._original: Interpreter | None = None

    def compare(self, samples: list[list[Array]]) -> Verification:
        """Compares the models on samples.

        Raises:
            DifferenceError: a layer computes something else.
            ConversionError: rounding to integers moves the outputs too far.
        """
        expected, zeros, assumed = self._reference(samples)
        if self._has_grid:
            actual = run(self.models[1], samples) if samples else []
            columns = [np.concatenate(column) for column in zip(*expected, strict=True)]
            worst = max(map(_relative_error, columns, actual), default=0.0)
            if worst > INT8_TOLERANCE:
                raise ConversionError(
                    f"the converted model's outputs are off by {worst:.2g} of their root mean square, "
                    f"expected {INT8_TOLERANCE} at most"
                )
            return Verification(worst, len(samples), in_integers=True, exact_zeros=zeros, assumed=assumed)
        gaps: list[float] = []
        found: list[Divergence] = []
        for sample, outputs in zip(samples, expected, strict=True):
            gap = max(map(difference, outputs, run(self.models[1], [sample])))
            if gap > 0:
                self._layers = self._layers or LayerComparison("verify", self._source, self._converted)
                divergence = self._layers.first_divergence(sample)
                if divergence is not None and divergence.flipped:
                    found.append(divergence)
                if gap > TOLERANCE:
                    whole, (gap, wrong) = gap, self._layers.given_the_sources_signs(sample)
                    if gap > TOLERANCE or wrong is not None:
                        raise DifferenceError(_failure(whole, wrong))
            gaps.append(gap)
        return Verification(max(gaps, default=0.0), len(gaps), by_layer(found), exact_zeros=zeros, assumed=assumed)

    def _reference(self, samples: list[list[Array]]) -> tuple[list[list[Array]], tuple[ExactZeros, ...], float]:
        """Runs the source on each sample.

        Returns:
            the outputs for each sample, the exact zeros in all samples, and the change of the outputs by what
            `assume_nonzero` assumes.
        """
        outputs, zeros, assumed = [], list[ExactZeros](), 0.0
        for sample in samples:
            values = run(self.models[0], [sample])
            outputs.append(values[: self._outputs])
            found = counted(self._signs, values[self._outputs :])
            zeros += found
            if self._has_zero_weights or any(one.zeros for one in found):
                self._original = self._original or interpreter_for("verify", self._exact)
                assumed = max(assumed, *map(difference, run(self._original, [sample]), outputs[-1]))
        return outputs, by_sign(zeros), assumed


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


def _relative_error(expected: Array, actual: Array) -> float:
    if expected.shape != actual.shape:
        return float("inf")
    error, signal = (np.sqrt(np.mean(np.square(v.astype(np.float64)))) for v in (expected - actual, expected))
    return float(error / signal) if signal else float(error)
