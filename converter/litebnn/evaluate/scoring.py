"""Scores a batch: loads it, preprocesses it for each model, runs the model, and keeps the best classes."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from litebnn.evaluate.batches import Array, Batch, Samples
from litebnn.evaluate.recipes import Recipe
from litebnn.runtime.interpreter import Interpreter
from litebnn.runtime.predictor import Predictor

TOP = 5

Result = dict[str, Any]
"""The result of a batch, as JSON can hold it. An evaluation stores four keys.

`labels` is a list, or None. `top` has the best classes for each model and sample, best first. `seconds` is the run time
of each model. `left_out` has the name and reason of each sample that cannot be read.
"""


@dataclass(frozen=True)
class Model:
    """The name and content of a `.tflite` file."""

    name: str
    content: bytes


@dataclass(frozen=True)
class Scoring:
    """The work of running models on batches. Each process receives it once.

    Raises:
        ValueError: a model cannot be run, or does not have one input and one output of scores.
    """

    models: tuple[Model, ...]
    recipe: Recipe

    def prepared(self, predictor_of: Callable[[Model], Predictor] | None = None) -> Callable[[Batch], Result]:
        """Returns a function that scores a batch.

        The function has a predictor for each model, by default an interpreter with one thread.
        """
        interpreters = [(predictor_of or _interpreter)(model) for model in self.models]
        pairs = list(zip(self.models, interpreters, strict=True))
        for model, interpreter in pairs:
            _check_scores(model.name, interpreter.output_shapes)
        ready = [Ready(model.name, interpreter, self.recipe) for model, interpreter in pairs]
        return lambda batch: _score(batch, ready, interpreters)


def _check_scores(name: str, shapes: list[tuple[int, ...]]) -> None:
    if len(shapes) != 1 or len(shapes[0]) < 2 or np.prod(shapes[0][1:-1]) != 1:
        raise ValueError(f"{name} has outputs {shapes}, expected one of scores [n, classes]")


def _interpreter(model: Model) -> Interpreter:
    try:
        return Interpreter(model.content)
    except ValueError as error:
        raise ValueError(f"{model.name}: {error}") from None


class Ready:
    """Preprocesses samples for one model."""

    def __init__(self, name: str, model: Predictor, recipe: Recipe) -> None:
        if len(model.input_shapes) != 1 or len(model.input_shapes[0]) < 2 or 0 in model.input_shapes[0]:
            raise ValueError(f"{name} has inputs {model.input_shapes}, expected one of samples [n, ...]")
        self.batch, *shape = model.input_shapes[0]
        self.shape = tuple(shape)
        self.dtype, (self._scale, self._zero_point) = model.input_types[0], model.input_quantization[0]
        is_float = self.dtype.kind == "f"
        chosen = recipe if is_float or self._scale else recipe.of_plain_pixels
        self._make = chosen.prepared(None if is_float else self._levels)

    def runs(self, samples: Samples) -> list[Array]:
        """The preprocessed samples, as one array for each run of the model."""
        rows = self._rows(samples)
        return [np.stack(rows[start : start + self.batch]) for start in range(0, len(rows), self.batch)]

    def inputs(self, samples: Samples) -> Array:
        """All samples in the type of the model's input, [samples, ...], which must have one size."""
        return np.stack(self._rows(samples))

    def _rows(self, samples: Samples) -> list[Array]:
        """The preprocessed samples. The last sample is repeated until the model's batch is full."""
        rows = [self._in_type(self._make(np.asarray(sample), self.shape)) for sample in samples.inputs]
        return rows + rows[-1:] * (-len(rows) % self.batch)

    def _in_type(self, values: Array) -> Array:
        if values.dtype == self.dtype or self.dtype.kind == "f":
            return values.astype(self.dtype, copy=False)
        return self._levels(values)

    def _levels(self, values: Array) -> Array:
        """Converts real values to levels of a quantized input."""
        limits = np.iinfo(self.dtype)
        # If an int8 input has no scale, its values are the pixels minus 128.
        plain = (1.0, -128 if self.dtype == np.int8 else 0)
        scale, zero_point = (self._scale, self._zero_point) if self._scale else plain
        # QUANTIZE rounds halves away from zero. With doubles, adding one half to a value is exact.
        steps = (values / scale).astype(np.float64)
        levels = np.trunc(steps + np.copysign(0.5, steps)) + zero_point
        quantized: Array = np.clip(levels, limits.min, limits.max).astype(self.dtype)
        return quantized


def _score(batch: Batch, ready: list[Ready], interpreters: list[Predictor]) -> Result:
    samples = batch.part.load()
    top: list[list[list[int]]] = []
    seconds: list[float] = []
    made: dict[tuple[Any, ...], list[Array]] = {}
    for one, interpreter in zip(ready, interpreters, strict=True):
        if not len(samples.inputs):
            top, seconds = [[] for _ in ready], [0.0 for _ in ready]
            break
        key = (one.batch, one.shape, one.dtype, *interpreter.input_quantization[0])
        if key not in made:
            made[key] = one.runs(samples)
        started = time.perf_counter()
        outputs = np.concatenate([interpreter.predict(run) for run in made[key]])[: len(samples.inputs)]
        seconds.append(time.perf_counter() - started)
        top.append(best_classes(outputs, samples))
    return result_of(samples, top, seconds)


def result_of(samples: Samples, top: list[list[list[int]]], seconds: list[float]) -> Result:
    """The result of a batch, in the form that `Result` describes."""
    labels = None if samples.labels is None else list(samples.labels)
    return {"labels": labels, "top": top, "seconds": seconds, "left_out": [list(each) for each in samples.unreadable]}


def best_classes(outputs: Array, samples: Samples) -> list[list[int]]:
    """The best five classes of each sample, best first. Classes with equal scores are sorted by number.

    Raises:
        ValueError: a label is not a class of the model.

    Example:
        >>> best_classes(np.array([[1, 3, 3], [2, 0, 1]], np.int8), Samples([], None))
        [[1, 2, 0], [0, 2, 1]]
    """
    scores = outputs.reshape(len(outputs), -1).astype(np.float32)
    wrong = [label for label in samples.labels or () if not 0 <= label < scores.shape[1]]
    if wrong:
        raise ValueError(f"the data set has the label {wrong[0]}, a model the classes 0 to {scores.shape[1] - 1}")
    order = np.argsort(-scores, axis=1, kind="stable")[:, :TOP]
    return [[int(each) for each in row] for row in order]
