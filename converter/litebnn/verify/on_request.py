"""Verifies a conversion on the data that the caller gives: inputs, a data set, or nothing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from itertools import islice

import numpy as np

from litebnn.errors import ConversionError, boundary, warn
from litebnn.evaluate.batches import Array, Batch
from litebnn.evaluate.data_set import DataSet
from litebnn.evaluate.recipes import Recipe
from litebnn.evaluate.scoring import Ready, Result
from litebnn.options import ConvertOptions, asks_to_verify, verifies
from litebnn.rules.build.notes import Layer
from litebnn.runtime.predictor import arrays_of
from litebnn.verify.assumption import as_assumed
from litebnn.verify.exact_zeros import Assumed
from litebnn.verify.verification import (
    DifferenceError,
    SideBySide,
    Verification,
    as_verification,
    joined,
    of_some,
    verify_apart,
)

_VERIFIED_SAMPLES = 16


def verification_of(
    source: bytes, result: bytes, names: list[str], layers: Sequence[Layer], options: ConvertOptions
) -> Verification | None:
    """Verifies a conversion on the given inputs, else on the calibration samples, else on random inputs.

    Random inputs lie in the range that the option `input_range` states. `names` are the names of the source's inputs.
    `layers` are the source's layers, for the report. If `verify` is neither given nor turned off, a conversion with
    `assume_nonzero` is verified; a warning says so if that is not possible.

    Raises:
        ConversionError: a difference was found, or a verification that the caller asks for is not possible.
    """
    if not verifies(options):
        return None
    options["progress"]("verifying")
    with boundary():
        assumed = as_assumed(source, layers) if options["assume_nonzero"] else None
    if asks_to_verify(options):
        found = _verified(source, result, names, options, assumed)
    else:
        try:
            found = _verified(source, result, names, options, assumed)
        except (ConversionError, ValueError) as error:
            if isinstance(error, DifferenceError) or isinstance(error.__cause__, DifferenceError):
                raise ConversionError(f"{error} (verify=False leaves out this check)") from error
            _warn(f"the conversion is not verified: {error}")
            return None
    for line in found.warnings():
        _warn(line)
    return found


def _verified(
    source: bytes, result: bytes, names: list[str], options: ConvertOptions, assumed: Assumed | None
) -> Verification:
    inputs, dataset = options["verify"], options["representative_dataset"]
    is_given = inputs is not None and inputs is not True
    large = next((each for each in (inputs, dataset) if isinstance(each, DataSet)), None)
    if large is not None and (inputs is large or not is_given):
        return _verify_data_set(source, result, large, assumed, most=None if inputs else 1)
    arrays: list[Array] | None = None
    if is_given:
        arrays = arrays_of(inputs, names)
    elif dataset is not None:
        samples = islice(dataset() if callable(dataset) else dataset, _VERIFIED_SAMPLES)
        columns = zip(*(arrays_of(sample, names) for sample in samples), strict=True)
        arrays = [np.concatenate(column) for column in columns] or None
    return verify_apart(source, result, arrays, options["input_range"], assumed)


def _warn(line: str) -> None:
    warn(line, __name__, "litebnn.convert")


@dataclass(frozen=True)
class _VerifyBatch:
    """A task for a data set's executor: to run a model and its conversion on one batch, and compare the outputs."""

    source: bytes
    converted: bytes
    recipe: Recipe
    assumed: Assumed | None

    def prepared(self) -> Callable[[Batch], Result]:
        comparison = SideBySide(self.source, self.converted, self.assumed)
        ready = Ready("the model", comparison.models[0], self.recipe)

        def verify(batch: Batch) -> Result:
            samples = batch.part.load()
            runs = [[one] for one in ready.runs(samples)]
            found = comparison.compare(runs) if runs else Verification(0.0, 0)
            return {**asdict(found), "left_out": [list(each) for each in samples.unreadable]}

        return verify


def _verify_data_set(
    source: bytes, converted: bytes, dataset: DataSet, assumed: Assumed | None, most: int | None
) -> Verification:
    """Runs `verify_conversion` on all samples of a data set, or on at most `most` batches, with the data set's
    executor.

    Raises:
        ConversionError: `verify_conversion` found a difference, or a batch cannot be run.
    """
    work = partial(_VerifyBatch, source, converted, assumed=assumed)
    return of_some(joined([as_verification(result) for result in dataset.results("verify", work, most)]))
