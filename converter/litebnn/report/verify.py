"""Runs a source model and its conversion side by side in the installed runtime."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from litebnn.contract import unpack_bits
from litebnn.errors import ConversionError
from litebnn.flatbuffer import read_model
from litebnn.graph import Array, Graph, Model, Tensor
from litebnn.rewriting.signs import find_sign
from litebnn.runtime.intermediates import interpreter_for, with_outputs
from litebnn.runtime.predictor import arrays_of

# Float sums in another order differ by less than this, relative to the tensor's largest value.
TOLERANCE = 1e-3
# An int8 result's error may have this share of the values' root mean square.
INT8_TOLERANCE = 0.5
# Rounding may turn a sign whose value is this near to the threshold, relative to the mean distance.
_CLOSE = 1e-4
_RANDOM_SAMPLES, _RANDOM_TRIES = 2, 8
# The passes append this to a sign's name for its bits.
_BITS = "/bits"


def verify_conversion(
    source: bytes,
    converted: bytes,
    inputs: npt.ArrayLike | Sequence[npt.ArrayLike] | Mapping[str, npt.ArrayLike] | None = None,
) -> float:
    """Compares the outputs of two models.

    The source sums floats, the result counts bits: where a value next to zero is rounded to the other side, its sign
    turns over, and all that follows may differ. Such a sample says nothing and is passed over. A result that is int8
    is held to half of the values' root mean square only: what int8 loses, it may lose.

    Args:
        source, converted: `.tflite` files with the same inputs and outputs; those of `converted` may be int8.
        inputs: an array, or a list or dictionary with one for each input, batch first; random normal values if None.
    Returns:
        The largest difference of an output, relative to the output's largest value (int8: root mean squares).
    Raises:
        ConversionError: it is too large, and the message names the first layer that differs; or every sample was
            passed over.
    """
    samples = _samples(read_model(source), inputs)
    model = read_model(converted)
    if any(tensor.type == "INT8" for tensor in _computed(model.graphs[0])):
        worst = max(_gaps(_relative_error, source, converted, samples))
        if worst > INT8_TOLERANCE:
            raise ConversionError(f"the converted model's outputs are off by {worst:.2g} of their values")
        return worst
    gaps = []
    for sample in samples:
        gap = max(_gaps(difference, source, converted, [sample]))
        if gap > TOLERANCE:
            place = first_divergence(source, converted, sample)
            if place.by_rounding:
                continue
            raise ConversionError(
                f"the converted model's outputs are off by {gap:.2g} of the largest value; the first layer that "
                f'differs is "{place.name}"'
            )
        gaps.append(gap)
        if inputs is None and len(gaps) == _RANDOM_SAMPLES:
            break
    if not gaps:
        raise ConversionError("the model cannot be verified on these inputs: in each, rounding turns a sign over")
    return max(gaps)


def _gaps(
    measure: Callable[[Array, Array], float], source: bytes, converted: bytes, samples: list[list[Array]]
) -> list[float]:
    """One measure for each output."""
    pairs = zip(_run(source, samples), _run(converted, samples), strict=True)
    return [measure(expected, actual) for expected, actual in pairs]


def _relative_error(expected: Array, actual: Array) -> float:
    if expected.shape != actual.shape:
        return float("inf")
    error, signal = (np.sqrt(np.mean(np.square(v.astype(np.float64)))) for v in (expected - actual, expected))
    return float(error / signal) if signal else float(error)


def difference(expected: Array, actual: Array) -> float:
    """The largest difference, relative to the largest expected value; infinite where the shapes differ."""
    if expected.shape != actual.shape:
        return float("inf")
    left, right = expected.astype(np.float64), actual.astype(np.float64)
    scale = float(np.max(np.abs(left), initial=0.0)) or 1.0
    gap = np.where((left == right) | (np.isnan(left) & np.isnan(right)), 0.0, np.abs(left - right))
    return float(np.max(np.nan_to_num(gap, nan=np.inf), initial=0.0)) / scale


@dataclass(frozen=True)
class Divergence:
    """Where two models begin to differ.

    Attributes:
        name: the source's name of the tensor.
        by_rounding: it is a sign that turned over where the value was next to zero.
    """

    name: str
    by_rounding: bool


def first_divergence(source: bytes, converted: bytes, sample: list[Array]) -> Divergence:
    """The first tensor, in order of execution, in which the two models differ, among those that both have."""
    left, right = read_model(source), read_model(converted)
    known = {tensor.name.split(";")[0]: tensor for tensor in _computed(left.graphs[0])}
    pairs = []
    for tensor in _computed(right.graphs[0]):
        twin = known.get(tensor.name.split(";")[0].removesuffix(_BITS))
        if twin is not None and twin.type == "FLOAT32" and tensor.type in ("FLOAT32", "INT32"):
            pairs.append((twin, *_sign_of(left.graphs[0], twin), tensor))
    expected = _run(with_outputs(left, [twin for twin, *_ in pairs]), [sample])
    operands = _run(with_outputs(left, [operand for _, operand, *_ in pairs]), [sample])
    actual = _run(with_outputs(right, [tensor for *_, tensor in pairs]), [sample])
    for (twin, operand, threshold, tensor), a, x, b in zip(pairs, expected, operands, actual, strict=True):
        if tensor.type == "FLOAT32":
            if difference(a, b) > TOLERANCE:
                return Divergence(twin.name, by_rounding=False)
            continue
        turned = (a < 0) != unpack_bits(b, a.shape[-1])
        if np.any(turned):
            margin = np.broadcast_to(np.abs(x - threshold), turned.shape)
            close = operand is not twin and margin[turned].max() <= _CLOSE * margin.mean()
            return Divergence(twin.name, by_rounding=bool(close))
    return Divergence("the last one", by_rounding=False)


def _sign_of(graph: Graph, tensor: Tensor) -> tuple[Tensor, float | Array]:
    """What `tensor` is the sign of, and the threshold of that sign; itself and 0 where it is none."""
    sign = find_sign(graph, tensor)
    return (tensor, 0.0) if sign is None or sign.x.type != "FLOAT32" else (sign.x, sign.threshold)


def _computed(graph: Graph) -> list[Tensor]:
    return [tensor for op in graph.ops for tensor in op.outputs]


def _samples(model: Model, inputs: Any) -> list[list[Array]]:
    """One list of arrays, an array for each input, for every run."""
    graph = model.graphs[0]
    if inputs is None:
        generator = np.random.default_rng(0)
        return [[_random(tensor, generator) for tensor in graph.inputs] for _ in range(_RANDOM_TRIES)]
    arrays = arrays_of(inputs, model.input_names)
    if len(arrays) != len(graph.inputs):
        raise ValueError(f"verify has {len(arrays)} inputs, the model {len(graph.inputs)}")
    for array, tensor in zip(arrays, graph.inputs, strict=True):
        if array.shape[1:] != tensor.shape[1:] or len(array) % (tensor.shape[0] or 1):
            raise ValueError(f'verify: input "{tensor.name}" has shape {array.shape}, the model takes {tensor.shape}')
    steps = len(arrays[0]) // (graph.inputs[0].shape[0] if graph.inputs[0].shape else 1)
    return [
        [array[i * t.shape[0] : (i + 1) * t.shape[0]] for array, t in zip(arrays, graph.inputs, strict=True)]
        for i in range(steps)
    ]


def _random(tensor: Tensor, generator: np.random.Generator) -> Array:
    from litebnn.graph import NUMPY_TYPES

    dtype = NUMPY_TYPES.get(tensor.type, np.dtype(np.float32))
    if dtype.kind == "f":
        return generator.standard_normal(tensor.shape).astype(dtype)
    if dtype.kind == "b":
        return generator.integers(0, 2, tensor.shape).astype(dtype)
    low, high = (0, 2) if dtype.itemsize > 1 else (np.iinfo(dtype).min, np.iinfo(dtype).max + 1)
    return generator.integers(low, high, tensor.shape).astype(dtype)


def _run(model: bytes, samples: list[list[Array]]) -> list[Array]:
    """The outputs of all samples, in float where they are quantized; inputs are quantized where the model's are."""
    interpreter = interpreter_for("verify", model)
    grids = list(zip(interpreter.input_types, interpreter.input_quantization, strict=True))
    results = []
    for sample in samples:
        arrays = [_quantized(array, *grid) for array, grid in zip(sample, grids, strict=True)]
        results.append(arrays_of(interpreter.predict(arrays)))
    columns = [np.concatenate(column) for column in zip(*results, strict=True)]
    return [_dequantized(column, grid) for column, grid in zip(columns, interpreter.output_quantization, strict=True)]


def _quantized(array: Array, dtype: np.dtype[Any], grid: tuple[float, int]) -> Array:
    if array.dtype.kind != "f" or dtype != np.int8:
        return array
    levels: Array = np.clip(np.round(array / grid[0]) + grid[1], -128, 127).astype(np.int8)
    return levels


def _dequantized(array: Array, grid: tuple[float, int]) -> Array:
    scale, zero_point = grid
    return array if array.dtype != np.int8 or scale == 0 else ((array.astype(np.float32) - zero_point) * scale)
