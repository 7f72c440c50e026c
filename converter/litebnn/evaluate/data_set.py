"""A data set of any size for conversion and verification. Its batches run on the same executors as those of an
evaluation."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Protocol

from litebnn.errors import ConversionError, check_type, reason_with_file, warn, whole_number
from litebnn.evaluate.batches import Array, Batch
from litebnn.evaluate.executors import checked_workers, executor_of
from litebnn.evaluate.recipes import Recipe, open_recipe
from litebnn.evaluate.scoring import Ready, Result
from litebnn.evaluate.sources import open_source
from litebnn.runtime.predictor import Predictor

# Warnings skip the stack frames of these modules, so that they point at the user's code.
_CALLERS = ("litebnn.quantize.calibration", "litebnn.verify.on_request", "litebnn.convert")


class Job(Protocol):
    """What conversion and verification do with a batch. It can be pickled, because each process receives it once."""

    def prepared(self) -> tuple[Predictor, Callable[[list[Array]], Any]]:
        """A model, for whose input the samples are made, and a function of the inputs of its runs over a batch. The
        function's result can be written as JSON."""
        ...


@dataclass(frozen=True)
class _OfBatches:
    """A job as work for an executor: loads each batch and makes the model's inputs."""

    job: Job
    recipe: Recipe

    def prepared(self) -> Callable[[Batch], Result]:
        model, function = self.job.prepared()
        ready = Ready("the model", model, self.recipe)

        def run(batch: Batch) -> Result:
            samples = batch.part.load()
            return {"found": function(ready.runs(samples)), "left_out": [list(each) for each in samples.unreadable]}

        return run


@dataclass(frozen=True)
class DataSet:
    """Samples for the arguments `representative_dataset` and `verify` of the conversion functions.

    Args:
        data, preprocess, batch_size, workers, scheduler: the arguments of `litebnn.evaluate_models` with these names.
            The model must have one input.

    Raises:
        ValueError: `batch_size` is less than 1, or `workers` is negative or too large.
        TypeError: an argument is of a type that it cannot have.

    Example:
        >>> calibration = DataSet("imagenet/train", preprocess="zoo")
        >>> int8 = litebnn.convert_tflite("float.tflite", representative_dataset=calibration)  # doctest: +SKIP
    """

    data: str | os.PathLike[str] | Callable[[], Iterable[Any]]
    preprocess: str | Callable[[Array], Any] = "auto"
    batch_size: int = 32
    workers: int | None = None
    scheduler: str | None = None

    def __post_init__(self) -> None:
        if not callable(self.data):
            check_type("data", self.data, "a path or a function that yields batches", str, os.PathLike)
        if not callable(self.preprocess):
            check_type("preprocess", self.preprocess, "a text or a function", str)
        whole_number("batch_size", self.batch_size, 1)
        if self.workers is not None:
            checked_workers(self.workers)

    def results(self, purpose: str, job: Job, most: int | None = None) -> list[Any]:
        """Runs a job on every batch, or on the first `most` batches, and returns the results in order. Warns of samples
        that cannot be read.

        Raises:
            ConversionError: a batch fails, the data set or recipe cannot be opened, or there is no sample. The message
                begins with `purpose`.
        """
        folder = str(Path.cwd())
        try:
            source, recipe = open_source(self.data, folder), open_recipe(self.preprocess, folder)
            executor = executor_of(self.workers, self.scheduler, None, _warn)
            batches = islice(source.batches(self.batch_size), most)
            found = {batch.index: one for batch, one in executor(_OfBatches(job, recipe), batches)}
        except (ValueError, OSError, ImportError) as error:
            raise ConversionError(f"{purpose}: {reason_with_file(error)}") from error
        for name, reason in (each for index in sorted(found) for each in found[index]["left_out"]):
            _warn(f"{name} is left out: {reason}")
        if not found:
            raise ConversionError(f"{purpose}: {source.name} has no sample")
        return [found[index]["found"] for index in sorted(found)]


def _warn(line: str) -> None:
    warn(line, __name__, "litebnn.evaluate.dask_cluster", *_CALLERS)
