"""Verifies a conversion on the data that the caller gives: inputs, a data set, or nothing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from itertools import islice

import numpy as np

from litebnn.evaluate.batches import Array, Batch
from litebnn.evaluate.data_set import DataSet
from litebnn.evaluate.recipes import Recipe
from litebnn.evaluate.scoring import Ready, Result
from litebnn.options import ConvertOptions, asks_to_verify
from litebnn.report.differences.divergence import Divergence, by_layer
from litebnn.report.verify import SideBySide, Verification, of_some, verify_apart
from litebnn.runtime.predictor import arrays_of

_VERIFIED_SAMPLES = 16


def verification_of(source: bytes, result: bytes, names: list[str], options: ConvertOptions) -> Verification | None:
    """Verifies a conversion on the given inputs, else on the calibration samples, else on random inputs.

    Random inputs lie in the range that the option `input_range` states. `names` are the names of the source's inputs.
    """
    if not asks_to_verify(options):
        return None
    inputs, dataset = options["verify"], options["representative_dataset"]
    options["progress"]("verifying")
    large = next((each for each in (inputs, dataset) if isinstance(each, DataSet)), None)
    if large is not None and (inputs is True or inputs is large):
        return _verify_data_set(source, result, large)
    arrays: list[Array] | None = None
    if inputs is not True:
        arrays = arrays_of(inputs, names)
    elif dataset is not None:
        samples = islice(dataset() if callable(dataset) else dataset, _VERIFIED_SAMPLES)
        columns = zip(*(arrays_of(sample, names) for sample in samples), strict=True)
        arrays = [np.concatenate(column) for column in columns] or None
    return verify_apart(source, result, arrays, options["input_range"])


@dataclass(frozen=True)
class _VerifyBatch:
    """A task for a data set's executor: to run a model and its conversion on one batch, and compare the outputs."""

    source: bytes
    converted: bytes
    recipe: Recipe

    def prepared(self) -> Callable[[Batch], Result]:
        comparison = SideBySide(self.source, self.converted)
        ready = Ready("the model", comparison.models[0], self.recipe)

        def verify(batch: Batch) -> Result:
            samples = batch.part.load()
            runs = [[one] for one in ready.runs(samples)]
            found = comparison.compare(runs) if runs else Verification(0.0, 0)
            return {**asdict(found), "left_out": [list(each) for each in samples.unreadable]}

        return verify


def _verify_data_set(source: bytes, converted: bytes, dataset: DataSet) -> Verification:
    """Runs `verify_conversion` on all samples of a data set, with the data set's executor.

    Raises:
        ConversionError: `verify_conversion` found a difference, or a batch cannot be run.
    """
    results = dataset.results("verify", lambda recipe: _VerifyBatch(source, converted, recipe))
    return of_some(
        Verification(
            max(result["difference"] for result in results),
            sum(result["samples"] for result in results),
            by_layer(Divergence(**divergence) for result in results for divergence in result["flipped"]),
            any(result["in_integers"] for result in results),
        )
    )
