"""Makes test vectors: inputs and outputs with which an exported network tests itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from litebnn.analysis.bits import channels_of_bits
from litebnn.contract import pack_bits
from litebnn.errors import ConversionError
from litebnn.graph import Array, Graph, Tensor
from litebnn.micro.emit import array_text
from litebnn.micro.placement import Placement, argument_names
from litebnn.micro.program import C_TYPES
from litebnn.micro.reference import check_shapes, reference_interpreter, run_reference
from litebnn.runtime.predictor import arrays_of

MOST_VECTORS = 3
# The largest number of bytes of all test vectors together. A network on large images gets fewer vectors, so that a
# board has room for them.
MOST_BYTES = 1 << 16
# The largest difference of a float output that the self-test accepts, relative to the largest output. It is for
# networks with ops that are not exact, such as softmax.
TOLERANCE = 2e-6


@dataclass(frozen=True)
class Vectors:
    """Test vectors: inputs and outputs [vectors, ...] in the model's order, and the tolerance of float outputs."""

    inputs: tuple[Array, ...]
    outputs: tuple[Array, ...]
    tolerance: float


def random_inputs(graph: Graph, rng: np.random.Generator) -> list[Array]:
    """Makes random inputs for one run of the network."""
    bits = channels_of_bits(graph)
    return [_random(tensor, bits, rng) for tensor in graph.inputs]


def _random(tensor: Tensor, bits: Mapping[Tensor, int], rng: np.random.Generator) -> Array:
    if tensor.type == "FLOAT32":
        return rng.standard_normal(tensor.shape).astype(np.float32)
    if tensor.type == "INT8":
        return rng.integers(-128, 128, tensor.shape).astype(np.int8)
    if tensor.type == "BOOL":
        return rng.random(tensor.shape) < 0.5
    channels = bits.get(tensor, tensor.shape[-1] * 32)
    return pack_bits(rng.random((*tensor.shape[:-1], channels)) < 0.5)


def make_vectors(model: bytes, graph: Graph, is_exact: bool, samples: Any, seed: int = 0) -> Vectors:
    """Makes test vectors by running the reference on random inputs, or on the caller's samples.

    Raises:
        ConversionError: the samples do not have the model's shapes and types, or the runtime refuses the model, or
            computes other shapes than those in the model.
    """
    size = sum(C_TYPES[t.type][2] * int(np.prod(t.shape, dtype=np.int64)) for t in (*graph.inputs, *graph.outputs))
    count = max(1, min(MOST_VECTORS, MOST_BYTES // max(size, 1)))
    rng = np.random.default_rng(seed)
    inputs = [random_inputs(graph, rng) for _ in range(count)] if samples is None else _checked(graph, samples)[:count]
    try:
        check_shapes(graph)
        interpreter = reference_interpreter(model, with_library=True)
        outputs = [run_reference(interpreter, each) for each in inputs]
    except ValueError as error:
        raise ConversionError(str(error)) from None
    stacked = tuple(np.stack(column) for column in zip(*outputs, strict=True))
    floats = [np.abs(values[np.isfinite(values)]).max(initial=0) for values in stacked if values.dtype == np.float32]
    tolerance = 0.0 if is_exact else TOLERANCE * float(max(floats, default=0.0))
    return Vectors(tuple(np.stack(column) for column in zip(*inputs, strict=True)), stacked, tolerance)


def _checked(graph: Graph, given: Any) -> list[list[Array]]:
    """The samples as the inputs of one run each.

    Raises:
        ConversionError: they do not have the model's shapes and types.
    """
    try:
        samples = arrays_of(given, [tensor.name for tensor in graph.inputs])
    except ValueError as error:
        raise ConversionError(f"samples: {error}") from None
    if len(samples) != len(graph.inputs):
        raise ConversionError(f"{len(samples)} arrays of samples, expected one for each of {len(graph.inputs)} inputs")
    for array, tensor in zip(samples, graph.inputs, strict=True):
        expected = np.dtype("bool" if tensor.type == "BOOL" else tensor.type.lower())
        if array.ndim != max(1, len(tensor.shape)) or array.shape[1:] != tensor.shape[1:] or array.dtype != expected:
            found = f"{array.dtype} {list(array.shape)}"
            raise ConversionError(f'samples of "{tensor.name}" are {found}, expected {expected} {list(tensor.shape)}')
    batches = [tensor.shape[0] if tensor.shape else 1 for tensor in graph.inputs]
    count = min(len(array) // batch for array, batch in zip(samples, batches, strict=True))
    if not count:
        raise ConversionError(f"{min(map(len, samples))} samples, expected at least {max(batches)}")
    return [
        [
            array[i * batch : (i + 1) * batch].reshape(tensor.shape)
            for array, batch, tensor in zip(samples, batches, graph.inputs, strict=True)
        ]
        for i in range(count)
    ]


def _for_c(values: Array) -> Array:
    return (
        values.view(np.uint32)
        if values.dtype == np.int32
        else values.astype(np.uint8)
        if values.dtype == bool
        else values
    )


def vectors_header(vectors: Vectors, placement: Placement, name: str) -> str:
    """The text of the C header `NAME_vectors.h`."""
    inputs, outputs = argument_names(placement.graph)
    arrays = [*zip(inputs, vectors.inputs, strict=True), *zip(outputs, vectors.outputs, strict=True)]
    texts = (array_text(f"{name}_vectors_{text}", _for_c(np.ascontiguousarray(values))) for text, values in arrays)
    return (
        f"/* Inputs of {name} and what TensorFlow Lite's reference kernels make of them. */\n"
        f"#include <stdint.h>\n\nenum {{ {name.upper()}_VECTORS = {len(vectors.inputs[0])} }};\n\n" + "\n".join(texts)
    )


def main_parts(vectors: Vectors, placement: Placement, name: str) -> dict[str, Any]:
    """The parts of main.c that depend on the network: buffers, arguments and checks."""
    inputs, outputs = argument_names(placement.graph)
    graph, upper = placement.graph, name.upper()
    buffers = [
        f"static {C_TYPES[tensor.type][0]} {text}[{upper}_{text.upper()}_SIZE];\n"
        for text, tensor in zip(outputs, graph.outputs, strict=True)
    ]
    arguments = [f"{name}_vectors_{text} + vector * {upper}_{text.upper()}_SIZE" for text in inputs] + outputs
    checks = [
        _check(text, tensor, vectors.tolerance, name) for text, tensor in zip(outputs, graph.outputs, strict=True)
    ]
    given = [
        f"static {C_TYPES[tensor.type][0]} {text}[{upper}_{text.upper()}_SIZE];\n"
        for text, tensor in zip(inputs, graph.inputs, strict=True)
    ]
    return {
        "BUFFERS": "".join(buffers),
        "ARGUMENTS": ",\n        ".join(arguments),
        "CHECKS": "".join(checks),
        "SKETCH_BUFFERS": "".join((*given, *buffers)),
        "SKETCH_ARGUMENTS": ", ".join((*inputs, *outputs)),
    }


def _check(text: str, tensor: Tensor, tolerance: float, name: str) -> str:
    size = f"{name.upper()}_{text.upper()}_SIZE"
    expected = f"{name}_vectors_{text} + vector * {size}"
    if tensor.type == "FLOAT32":
        return f"    wrong_here += wrong_floats({text}, {expected}, {size}, {np.float32(tolerance)}f);\n"
    return f"    wrong_here += wrong_bytes({text}, {expected}, (int32_t)sizeof {text});\n"
