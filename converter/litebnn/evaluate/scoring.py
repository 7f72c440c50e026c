"""What a process does with a batch: loads it, makes it ready for each model, runs it, and takes the best classes."""

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
"""What is known of a batch, as JSON can hold it. Evaluating notes `labels` (a list, or None), `top` (for each model a
list of its best classes, the best first, for each sample), `seconds` (of each model) and `left_out` (name and reason
of each sample that cannot be read)."""


@dataclass(frozen=True)
class Model:
    """A `.tflite` file by its name and content."""

    name: str
    content: bytes


@dataclass(frozen=True)
class Scoring:
    """Runs models on batches; what it is made of travels to each process once.

    Raises:
        ValueError: a model cannot be run, or takes or gives something else than one input and scores.
    """

    models: tuple[Model, ...]
    recipe: Recipe

    def prepared(self, predictor_of: Callable[[Model], Predictor] | None = None) -> Callable[[Batch], Result]:
        """The function of a batch, with an interpreter of one thread for each model, or what else runs it."""
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
    """Makes samples ready for one model."""

    def __init__(self, name: str, model: Predictor, recipe: Recipe) -> None:
        if len(model.input_shapes) != 1 or len(model.input_shapes[0]) < 2:
            raise ValueError(f"{name} has inputs {model.input_shapes}, expected one of samples [n, ...]")
        self.batch, *shape = model.input_shapes[0]
        self.shape = tuple(shape)
        self.dtype, (self._scale, self._zero_point) = model.input_types[0], model.input_quantization[0]
        self._make = recipe.prepared()

    def runs(self, samples: Samples) -> list[Array]:
        """The same, an array for each run of the model."""
        inputs = self.inputs(samples) if len(samples.inputs) else np.empty(0)
        return [inputs[start : start + self.batch] for start in range(0, len(inputs), self.batch)]

    def inputs(self, samples: Samples) -> Array:
        """All samples in the model's own type, [samples, ...]; the last is repeated to fill a batch of the model's."""
        rows = [self._quantized(self._make(np.asarray(sample), self.shape)) for sample in samples.inputs]
        rows += rows[-1:] * (-len(rows) % self.batch)
        return np.stack(rows)

    def _quantized(self, values: Array) -> Array:
        if values.dtype == self.dtype or self.dtype.kind == "f":
            return values.astype(self.dtype)
        limits = np.iinfo(self.dtype)
        if self._scale:
            levels = np.round(values / self._scale) + self._zero_point
        else:
            # Without a scale, int8 stands for pixels less 128.
            levels = np.round(values) - (128 if self.dtype == np.int8 else 0)
        quantized: Array = np.clip(levels, limits.min, limits.max).astype(self.dtype)
        return quantized


def _score(batch: Batch, ready: list[Ready], interpreters: list[Predictor]) -> Result:
    samples = batch.part.load()
    top: list[list[list[int]]] = []
    seconds: list[float] = []
    made: dict[tuple[Any, ...], Array] = {}
    for one, interpreter in zip(ready, interpreters, strict=True):
        if not len(samples.inputs):
            top, seconds = [[] for _ in ready], [0.0 for _ in ready]
            break
        key = (one.batch, one.shape, one.dtype, *interpreter.input_quantization[0])
        if key not in made:
            made[key] = one.inputs(samples)
        started = time.perf_counter()
        outputs = interpreter.predict(made[key])[: len(samples.inputs)]
        seconds.append(time.perf_counter() - started)
        top.append(best_classes(outputs, samples))
    return result_of(samples, top, seconds)


def result_of(samples: Samples, top: list[list[list[int]]], seconds: list[float]) -> Result:
    """What is noted of a batch."""
    labels = None if samples.labels is None else list(samples.labels)
    return {"labels": labels, "top": top, "seconds": seconds, "left_out": [list(each) for each in samples.unreadable]}


def best_classes(outputs: Array, samples: Samples) -> list[list[int]]:
    """The best five classes of each sample, the best first; of equal scores, the first.

    Raises:
        ValueError: a label is none of the classes.

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
