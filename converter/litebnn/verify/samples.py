"""Makes the inputs of models that run side by side, and reads their outputs. Inputs and outputs are always float,
whatever a model's own types are."""

from __future__ import annotations

from typing import Any

import numpy as np

from litebnn.analysis.quantization import Range
from litebnn.graph import NUMPY_TYPES, Array, Model, Tensor
from litebnn.runtime.interpreter import Interpreter
from litebnn.runtime.predictor import arrays_of, fits

# The height, width or other size of random inputs where the model takes any.
_ANY_SIZE = 64


def samples_for(
    purpose: str, model: Model, inputs: list[Array] | None, *, count: int, seed: int = 0, limits: Range | None = None
) -> list[list[Array]]:
    """The samples: for every run a list of arrays, with an array for each input.

    `purpose` is the purpose of the samples, for messages. `inputs` has an array for each input, batch first; `count`
    random samples if it is None, which have 64 for each unknown size. `limits` is the (min, max) of uniform random
    floats; they are normally distributed if it is None.

    Raises:
        ValueError: the inputs do not match the model's inputs.
    """
    graph = model.graphs[0]
    if inputs is None:
        generator = np.random.default_rng(seed)
        return [[_random(tensor, generator, limits) for tensor in graph.inputs] for _ in range(count)]
    if len(inputs) != len(graph.inputs):
        raise ValueError(f"{purpose} has {len(inputs)} inputs, the model {len(graph.inputs)}")
    for array, tensor in zip(inputs, graph.inputs, strict=True):
        taken = tensor.shape_of_runs
        if not fits(array.shape[1:], taken[1:]) or len(array) % (tensor.shape[0] or 1):
            raise ValueError(f'{purpose}: input "{tensor.name}" has shape {array.shape}, the model takes {taken}')
    steps = len(inputs[0]) // (graph.inputs[0].shape[0] if graph.inputs[0].shape else 1)
    return [
        [array[i * t.shape[0] : (i + 1) * t.shape[0]] for array, t in zip(inputs, graph.inputs, strict=True)]
        for i in range(steps)
    ]


def _random(tensor: Tensor, generator: np.random.Generator, limits: Range | None) -> Array:
    dtype = NUMPY_TYPES.get(tensor.type, np.dtype(np.float32))
    shape = [_ANY_SIZE if size < 0 else size for size in tensor.shape_of_runs]
    if dtype.kind == "f" and limits is not None:
        return generator.uniform(*limits, shape).astype(dtype)
    if dtype.kind == "f":
        return generator.standard_normal(shape).astype(dtype)
    if dtype.kind == "b":
        return generator.integers(0, 2, shape).astype(dtype)
    low, high = (0, 2) if dtype.itemsize > 1 else (np.iinfo(dtype).min, np.iinfo(dtype).max + 1)
    return generator.integers(low, high, shape).astype(dtype)


def run(interpreter: Interpreter, samples: list[list[Array]]) -> list[Array]:
    """Runs all samples and returns the outputs in float. If a model has quantized inputs, the samples are quantized."""
    grids = list(zip(interpreter.input_types, interpreter.input_quantization, strict=True))
    results = []
    for sample in samples:
        arrays = [_quantized(array, *grid) for array, grid in zip(sample, grids, strict=True)]
        results.append(arrays_of(interpreter.predict(arrays)))
    columns = [np.concatenate([np.atleast_1d(array) for array in column]) for column in zip(*results, strict=True)]
    return [_dequantized(column, grid) for column, grid in zip(columns, interpreter.output_quantization, strict=True)]


def _quantized(array: Array, dtype: np.dtype[Any], grid: tuple[float, int]) -> Array:
    if array.dtype.kind != "f" or dtype not in (np.int8, np.uint8):
        return array
    ends = np.iinfo(dtype)
    levels: Array = np.clip(np.round(array / grid[0]) + grid[1], ends.min, ends.max).astype(dtype)
    return levels


def _dequantized(array: Array, grid: tuple[float, int]) -> Array:
    scale, zero_point = grid
    if array.dtype not in (np.int8, np.uint8) or scale == 0:
        return array
    return np.asarray((array.astype(np.float32) - zero_point) * scale)
