"""Finds the ranges of activations for post-training int8 quantization: observed on samples, assumed, or of a stem."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from litebnn.analysis.quantizable import activations
from litebnn.analysis.quantization import Range, Ranges
from litebnn.errors import ConversionError
from litebnn.graph import Array, Model, Tensor
from litebnn.options import ConvertOptions, Dataset
from litebnn.quantize.stem import ranges_of_stem
from litebnn.rules.build.notes import Notes

_DATASET = "representative_dataset"


def find_ranges(model: Model, notes: Notes, options: ConvertOptions) -> Ranges:
    """The ranges that the options ask for; empty if the model is not to be quantized."""
    dataset, limits = options["representative_dataset"], options["experimental_default_int8_range"]
    if dataset is not None:
        step = "running the representative dataset"
        options["progress"](step)
        return observe_ranges(model, dataset, lambda runs: options["progress"](f"{step}: {runs} runs"))
    if limits is not None:
        return assume_range(model, limits)
    return {} if options["input_range"] is None else ranges_of_stem(model, options["input_range"], notes)


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
    observed = [tensor for tensor in activations(graph) if tensor not in graph.inputs]
    ranges: Ranges = {}
    count = 0
    for what, runs in _observed(model, observed, dataset):
        for limits in runs:
            for tensor, found in zip((*graph.inputs, *observed), limits, strict=True):
                if found is not None:
                    _widen(ranges, tensor, found, what)
        count += len(runs)
        progress(count)
    if not count:
        raise ConversionError(f"{_DATASET} gave no sample")
    return ranges


def _observed(model: Model, tensors: list[Tensor], dataset: Dataset) -> Iterator[tuple[str, list[list[Range | None]]]]:
    """Runs a model on one sample after the other, or on all batches of a data set.

    Yields for each sample or batch its name for messages, and a list for each of its runs. The list has the (min, max)
    of each input and of each of `tensors`, or None for a tensor that is not float.
    """
    from litebnn.runtime.intermediates import interpreter_for, with_outputs
    from litebnn.runtime.predictor import arrays_of

    content = with_outputs(model, tensors)
    if hasattr(dataset, "results"):  # a litebnn.DataSet
        for batch in dataset.results(_DATASET, _Observe(content)):
            yield _DATASET, batch
        return
    interpreter = interpreter_for("a representative dataset", content)
    samples = dataset() if callable(dataset) else dataset
    if not isinstance(samples, Iterable):
        raise ConversionError(f"{_DATASET} returns {type(samples).__name__}, expected a function that yields samples")
    for number, sample in enumerate(samples):
        what = f"{_DATASET}: sample {number}"
        try:
            arrays = arrays_of(sample, model.input_names)
            result = interpreter.predict(arrays)
        except ValueError as error:
            raise ConversionError(f"{what}: {error}") from None
        yield what, [[_limits(array) for array in (*arrays, *arrays_of(result))]]


@dataclass(frozen=True)
class _Observe:
    """A job of a data set: runs a model, and records the range of values of its input and of each output."""

    model: bytes

    def prepared(self) -> tuple[Any, Callable[[list[Array]], list[list[Range | None]]]]:
        from litebnn.runtime.intermediates import interpreter_for
        from litebnn.runtime.predictor import arrays_of

        interpreter = interpreter_for(_DATASET, self.model)
        return interpreter, lambda inputs: [
            [_limits(array) for array in (one, *arrays_of(interpreter.predict(one)))] for one in inputs
        ]


def _limits(array: Array) -> Range | None:
    """The (min, max) of an array, extended to include zero; None for an array that is not float."""
    return None if array.dtype != np.float32 else (float(array.min(initial=0.0)), float(array.max(initial=0.0)))


def _widen(ranges: Ranges, tensor: Tensor, limits: Range, what: str) -> None:
    low, high = limits
    if not np.isfinite(low) or not np.isfinite(high):
        raise ConversionError(f'{what}: tensor "{tensor.name}" is not finite')
    before = ranges.get(tensor, (0.0, 0.0))
    ranges[tensor] = min(low, before[0]), max(high, before[1])


def assume_range(model: Model, limits: Range) -> Ranges:
    """Assigns the same (min, max) to every activation, for an int8 model that is only used to measure latency."""
    return {tensor: limits for graph in model.graphs for tensor in activations(graph)}
