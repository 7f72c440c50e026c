"""Compares two models: outputs, layers and sizes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from litebnn.analysis.bits import channels_of_bits
from litebnn.analysis.quantization import Range, numbers_of_grid
from litebnn.errors import ConversionError
from litebnn.flatbuffer import read_model, read_strictly
from litebnn.graph import Array, Model
from litebnn.report.macs import Macs, count_macs
from litebnn.runtime.intermediates import interpreter_for
from litebnn.runtime.isolated import run_apart
from litebnn.runtime.predictor import arrays_of
from litebnn.safety import check_model
from litebnn.verify.divergence import Divergence, LayerComparison, by_layer, difference
from litebnn.verify.samples import run, samples_for

# The time limit of a comparison in seconds: a fixed part, and a part for each sample.
_SECONDS, _SECONDS_PER_SAMPLE = 60, 30
_MEMORY, _MEMORY_PER_BYTE = 4 << 30, 16


@dataclass(frozen=True)
class OutputDifference:
    """The difference of an output between two models."""

    # The name of the output in the first model.
    name: str
    # The largest difference between the outputs, relative to the first model's largest value.
    difference: float
    # The share of samples for which the largest value of this output has the same index in both models. None if the
    # output has only one value for each sample.
    same_class: float | None


@dataclass(frozen=True)
class Comparison:
    """The comparison of two models with the same inputs."""

    # The sizes of the two files in bytes.
    bytes: tuple[int, int]
    # The multiply-accumulates of each model.
    macs: tuple[Macs, Macs]
    # The number of samples that were run.
    samples: int
    # For each output, the difference between the two models, in the order of the outputs.
    outputs: tuple[OutputDifference, ...]
    # The number of tensors that both models compute.
    common_layers: int
    # The tensors that differ in any sample, in the order of execution. The numbers in each row are sums over all
    # samples.
    layers: tuple[Divergence, ...]

    @property
    def difference(self) -> float:
        """The largest difference of an output."""
        return max((output.difference for output in self.outputs), default=0.0)

    def to_dict(self) -> dict[str, Any]:
        """The comparison as plain numbers, strings, lists and dicts, for JSON."""
        return {**asdict(self), "macs": [macs._asdict() for macs in self.macs], "difference": self.difference}


def compare_models(first: bytes, second: bytes, inputs: Any = None, *, samples: int = 4, seed: int = 0) -> Comparison:
    """Runs two models on the same inputs, in a separate process with limits on time and memory.

    Args:
        first, second: `.tflite` files with the same inputs and outputs, converted or not; int8 values are compared as
            real numbers.
        inputs: an array, or a list or dictionary with one for each input, batch first; random samples if None. Random
        samples lie in the range that quantized inputs can represent. samples: the number of random samples. seed: the
        seed of random samples.

    Raises:
        ConversionError: a model cannot be read or run, or they have different inputs or outputs.
        ValueError: the inputs do not match the models' inputs.

    Example:
        >>> compare_models(Path("float.tflite").read_bytes(), Path("binary.tflite").read_bytes()).difference < 1e-5
        True
    """
    models = read_model(first), read_model(second)
    _check_interfaces(*models)
    if inputs is not None:
        inputs = arrays_of(inputs, models[0].input_names)
        samples = len(samples_for("compare", models[0], inputs, count=0))
    size = len(first) + len(second) + sum(array.nbytes for array in inputs or ())
    found = run_apart(
        "comparing",
        compare_as_dict,
        first,
        second,
        inputs,
        samples,
        seed,
        seconds=_SECONDS + _SECONDS_PER_SAMPLE * samples,
        memory=_MEMORY + _MEMORY_PER_BYTE * size,
    )
    return Comparison(
        bytes=(len(first), len(second)),
        macs=(count_macs(first), count_macs(second)),
        samples=samples,
        outputs=tuple(OutputDifference(**output) for output in found["outputs"]),
        common_layers=found["common_layers"],
        layers=by_layer(Divergence(**layer) for layer in found["layers"]),
    )


def open_shapes(model: bytes, inputs: Any = None) -> tuple[tuple[int, ...], ...]:
    """The shapes of the inputs in a run of `compare_models`, if the model leaves sizes open; () if it does not."""
    read = read_model(model)
    if not any(-1 in tensor.shape_of_runs for tensor in read.graphs[0].inputs):
        return ()
    arrays = None if inputs is None else arrays_of(inputs, read.input_names)
    return tuple(array.shape for array in samples_for("compare", read, arrays, count=1)[0])


def _check_interfaces(first: Model, second: Model) -> None:
    for role in ("inputs", "outputs"):
        left, right = ([tensor.shape for tensor in getattr(model.graphs[0], role)] for model in (first, second))
        if left != right:
            raise ConversionError(f"the models have different {role}: {_shapes(left)}, and {_shapes(right)}")


def _shapes(shapes: list[tuple[int, ...]]) -> str:
    return ", ".join("×".join(map(str, shape)) or "a number" for shape in shapes) or "none"


def compare_as_dict(first: bytes, second: bytes, inputs: list[Array] | None, samples: int, seed: int) -> dict[str, Any]:
    """The comparison in a form that JSON can hold. A runtime's error becomes a ConversionError about the model."""
    models = [read_strictly(content) for content in (first, second)]
    for model in models:
        check_model(model)
    # Random samples are made for a model with float inputs. If the other model has quantized inputs, the samples are
    # quantized for it.
    floats = [all(tensor.type == "FLOAT32" for tensor in model.graphs[0].inputs) for model in models]
    source = models[0 if floats[0] or not floats[1] else 1]
    limits = _range_of_inputs(models)
    arrays = samples_for("compare", source, inputs, count=samples, seed=seed, limits=limits)
    # The comparison needs a source model and its conversion. If only one of the models has packed signs, this model is
    # taken for the conversion.
    has_bits = [bool(channels_of_bits(model.graphs[0])) for model in models]
    contents = (second, first) if has_bits == [True, False] else (first, second)
    try:
        interpreters = [interpreter_for("compare", content) for content in (first, second)]
        pairs = zip(*(run(interpreter, arrays) for interpreter in interpreters), strict=True)
        outputs = [
            asdict(_output(tensor.name, *pair)) for tensor, pair in zip(models[0].graphs[0].outputs, pairs, strict=True)
        ]
        layers = LayerComparison("compare", *contents)
        found = [asdict(one) for sample in arrays for one in layers.divergences(sample)]
    except ConversionError:
        raise
    except ValueError as error:
        raise ConversionError(f"the models cannot be compared: {error}") from error
    return {"outputs": outputs, "common_layers": layers.layers, "layers": found}


def _range_of_inputs(models: Iterable[Model]) -> Range | None:
    """The (min, max) that all quantized inputs of the models can represent; None if no input is quantized."""
    found: list[Array] = []
    for graph in (model.graphs[0] for model in models):
        for tensor in graph.inputs:
            readers = graph.consumers(tensor)
            are_quantizing = tensor.type == "FLOAT32" and all(reader.name == "QUANTIZE" for reader in readers)
            levels = [reader.output for reader in readers] if are_quantizing else [tensor]
            found += [numbers for each in levels if (numbers := numbers_of_grid(each)) is not None]
    low = max((float(numbers[0]) for numbers in found), default=0.0)
    high = min((float(numbers[-1]) for numbers in found), default=0.0)
    return (low, high) if low < high else None


def _output(name: str, left: Array, right: Array) -> OutputDifference:
    classes = None
    if left.shape == right.shape and left.ndim > 1 and left[0].size > 1:
        rows = [array.reshape(len(array), -1).argmax(axis=-1) for array in (left, right)]
        classes = float(np.mean(rows[0] == rows[1]))
    return OutputDifference(name, difference(left, right), classes)
