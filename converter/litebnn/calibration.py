"""Finds the ranges of activations for post-training int8 quantization: observed on samples, or assumed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from litebnn.analysis.grids import Range, Ranges
from litebnn.analysis.quantizable import activations
from litebnn.errors import ConversionError
from litebnn.evaluate.batches import Array, Batch
from litebnn.evaluate.data_set import DataSet
from litebnn.evaluate.recipes import Recipe
from litebnn.evaluate.scoring import Ready, Result
from litebnn.graph import Model, Tensor
from litebnn.options import Dataset
from litebnn.runtime.intermediates import interpreter_for, with_outputs
from litebnn.runtime.predictor import arrays_of

_DATASET = "representative_dataset"


def observe_ranges(model: Model, dataset: Dataset, progress: Callable[[int], None] = lambda runs: None) -> Ranges:
    """Runs a model on samples and records the range of every float activation of its first subgraph.

    Args:
        model: a model that is float except for its binary layers.
        dataset: samples, or a function that returns them, or a `litebnn.DataSet`. A sample is an array of the input's
            shape, or a list or dictionary with one array for each input.
        progress: called with the number of runs so far.

    Returns:
        the (min, max) of each activation.

    Raises:
        ConversionError: there is no sample, a sample does not fit the model, a value is not finite, or no runtime is
            installed.
    """
    graph = model.graphs[0]
    if isinstance(dataset, DataSet):
        return _ranges_of_batches(model, dataset, progress)
    observed = [tensor for tensor in activations(graph) if tensor not in graph.inputs]
    interpreter = interpreter_for("a representative dataset", with_outputs(model, observed))
    tensors, names = [*graph.inputs, *observed], model.input_names
    ranges: Ranges = {}
    count = 0
    for sample in dataset() if callable(dataset) else dataset:
        try:
            arrays = arrays_of(sample, names)
            result = interpreter.predict(arrays)
        except ValueError as error:
            raise ConversionError(f"{_DATASET}: sample {count}: {error}") from None
        for tensor, array in zip(tensors, [*arrays, *arrays_of(result)], strict=True):
            if (limits := _limits(array)) is not None:
                _widen(ranges, tensor, limits, f"{_DATASET}: sample {count}")
        count += 1
        progress(count)
    if not count:
        raise ConversionError(f"{_DATASET} gave no sample")
    return ranges


@dataclass(frozen=True)
class _ObserveBatch:
    """A job for a worker process: runs a model, and records the range of values of its input and of each output."""

    model: bytes
    recipe: Recipe

    def prepared(self) -> Callable[[Batch], Result]:
        interpreter = interpreter_for(_DATASET, self.model)
        ready = Ready("the model", interpreter, self.recipe)

        def observe(batch: Batch) -> Result:
            samples = batch.part.load()
            runs = [(one, *arrays_of(interpreter.predict(one))) for one in ready.runs(samples)]
            limits = [[_limits(array) for array in arrays] for arrays in runs]
            return {"limits": limits, "left_out": [list(each) for each in samples.unreadable]}

        return observe


def _limits(array: Array) -> Range | None:
    """The (min, max) of an array, extended to include zero; None for an array that is not float."""
    return None if array.dtype != np.float32 else (float(array.min(initial=0.0)), float(array.max(initial=0.0)))


def _ranges_of_batches(model: Model, dataset: DataSet, progress: Callable[[int], None]) -> Ranges:
    graph = model.graphs[0]
    observed = [tensor for tensor in activations(graph) if tensor not in graph.inputs]
    shown, ranges, count = with_outputs(model, observed), Ranges(), 0
    for result in dataset.results(_DATASET, lambda recipe: _ObserveBatch(shown, recipe)):
        for limits in result["limits"]:
            for tensor, found in zip([*graph.inputs, *observed], limits, strict=True):
                if found is not None:
                    _widen(ranges, tensor, found, _DATASET)
        count += len(result["limits"])
        progress(count)
    if not ranges:
        raise ConversionError(f"{_DATASET} gave no sample")
    return ranges


def _widen(ranges: Ranges, tensor: Tensor, limits: Range, what: str) -> None:
    low, high = limits
    if not np.isfinite(low) or not np.isfinite(high):
        raise ConversionError(f'{what}: tensor "{tensor.name}" is not finite')
    before = ranges.get(tensor, (0.0, 0.0))
    ranges[tensor] = min(low, before[0]), max(high, before[1])


def assume_range(model: Model, limits: Range) -> Ranges:
    """Assigns the same (min, max) to every activation, for an int8 model that is only used to measure latency."""
    return {tensor: limits for graph in model.graphs for tensor in activations(graph)}
