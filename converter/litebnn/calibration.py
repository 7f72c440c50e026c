"""Where the ranges of the activations come from that make a model int8 after training."""

from __future__ import annotations

import numpy as np

from litebnn.errors import ConversionError
from litebnn.graph import Model
from litebnn.options import Dataset
from litebnn.passes.int8.insert_quantization import Range, Ranges, activations
from litebnn.runtime.intermediates import interpreter_for, with_outputs
from litebnn.runtime.predictor import arrays_of


def observe_ranges(model: Model, dataset: Dataset) -> Ranges:
    """Runs a model on samples and notes what every float activation of its first subgraph takes on.

    Args:
        model: float but for its binary layers.
        dataset: samples, each an array of the input's shape, or a list or dictionary with one for each input; or a
            function that gives them.

    Returns:
        (min, max) of each activation.

    Raises:
        ConversionError: there is no sample, a sample does not fit, a value is not finite, or no runtime is installed.
    """
    graph = model.graphs[0]
    observed = [tensor for tensor in activations(graph) if tensor not in graph.inputs]
    interpreter = interpreter_for("a representative dataset", with_outputs(model, observed))
    tensors, names = [*graph.inputs, *observed], model.input_names
    ranges: Ranges = {}
    count = -1
    for count, sample in enumerate(dataset() if callable(dataset) else dataset):
        try:
            arrays = arrays_of(sample, names)
            result = interpreter.predict(arrays)
        except ValueError as error:
            raise ConversionError(f"representative_dataset: sample {count}: {error}") from None
        for tensor, array in zip(tensors, [*arrays, *arrays_of(result)], strict=True):
            if array.dtype != np.float32:
                continue
            low, high = float(array.min(initial=0.0)), float(array.max(initial=0.0))
            if not np.isfinite(low) or not np.isfinite(high):
                raise ConversionError(f'representative_dataset: sample {count}: tensor "{tensor.name}" is not finite')
            before = ranges.get(tensor, (0.0, 0.0))
            ranges[tensor] = min(low, before[0]), max(high, before[1])
    if count < 0:
        raise ConversionError("representative_dataset gave no sample")
    return ranges


def assume_range(model: Model, limits: Range) -> Ranges:
    """The same (min, max) for every activation, for an int8 model of which only the latency counts."""
    return {tensor: limits for graph in model.graphs for tensor in activations(graph)}
