"""A FULLY_CONNECTED that is not binary, with weights of -alpha, 0 and alpha, gets its weights in INT4 or INT2."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from litebnn.analysis.quantization import NARROW_TYPES, bias_scale, is_int8, pack_levels, parameters, undequantized
from litebnn.analysis.weights import NOT_TERNARY, layer_weights, ternary_weights
from litebnn.graph import Array, Buffer, Graph, Op, Tensor, builtin_op, constant, derived, like
from litebnn.rules.build.notes import Notes, each


@dataclass(frozen=True)
class _Format:
    """A _Format has the op versions that support a narrow integer type, and the first ai-edge-litert releases that run
    them.
    """

    dequantize: int
    fully_connected: int
    runtime: str
    dynamic_range_runtime: str


_LEAST_SCALE = np.finfo(np.float32).tiny
_TOO_SMALL = "its weights are so small that runtimes refuse their scale"
FORMATS = {
    "INT4": _Format(6, 12, "1.4", "1.4"),
    "INT2": _Format(7, 14, "2.1", "2.1.2"),
}


@each("FULLY_CONNECTED")
def narrow_weights(graph: Graph, op: Op, notes: Notes) -> bool:
    """Stores the weights of a dense layer in the requested type, with a scale for each channel, if the new weights are
    exact.

    An int8 layer reads the new weights directly. A float layer reads them through a DEQUANTIZE, which a runtime
    evaluates once at its start. With the option `dynamic_range`, a float layer reads them directly too, and quantizes
    its input to int8 at run time.
    """
    stored, requested = undequantized(graph, op.input(1)).type, _requested(notes)
    if op.options.weights_format != 0 or NARROW_TYPES.get(stored, 8) <= NARROW_TYPES[requested]:
        return False
    reason = (_narrow_int8 if is_int8(op.inputs[0]) else _narrow_float)(graph, op, notes)
    return reason is None or notes.left_alone(op, f"{reason}, so they stay {op.input(1).type}")


def _requested(notes: Notes) -> str:
    return str(notes.options["low_bit_weights"]).upper()


def _narrow_float(graph: Graph, op: Op, notes: Notes) -> str | None:
    """Rewrites a float layer, or returns the reason why it stays as it is."""
    weights = layer_weights(graph, op)
    if weights is None or op.input(0).type != "FLOAT32":
        return "its weights are not a float constant"
    parts = ternary_weights(weights)
    if parts is None:
        return NOT_TERNARY
    if np.any(parts[1] < _LEAST_SCALE):
        return _TOO_SMALL
    type = _requested(notes)
    narrow, known = _narrow_constant(op.input(1), *parts, type), FORMATS[type]
    if notes.options["dynamic_range"]:
        _read_narrow(graph, op, narrow)
        notes.warn(
            op,
            f"{_needs(type, known.dynamic_range_runtime)}; its input is quantized to int8 when it runs, which changes "
            "results by about a hundredth of their largest value",
        )
        return None
    widened = like(op.input(1), derived(narrow.name, "/float"), type="FLOAT32", dims=weights.shape)
    graph.insert(builtin_op("DEQUANTIZE", [narrow], widened, version=known.dequantize), before=op)
    graph.set_input(op, 1, widened)
    notes.warn(op, f"{_needs(type, known.runtime)}; results stay what they were, but for rounding")
    return None


def _narrow_int8(graph: Graph, op: Op, notes: Notes) -> str | None:
    """Rewrites an int8 layer, or returns the reason why it stays as it is."""
    tensor, bias, type = op.input(1), op.optional(2), _requested(notes)
    weights, q = tensor.array, tensor.quantization
    if weights is None or weights.dtype != np.int8 or q is None or np.any(q.zero_point) or not is_int8(op.output):
        return "its weights are not a symmetric int8 constant"
    parts = ternary_weights(weights.astype(np.float32))
    if parts is None:
        return NOT_TERNARY
    levels, steps = parts
    if np.any(steps * q.scale < _LEAST_SCALE):
        return _TOO_SMALL
    narrow = _narrow_constant(tensor, levels, steps * q.scale, type)
    if bias is not None:
        scale, counts = bias_scale(op.input(0), narrow, bias.shape), bias.array
        if scale is None or counts is None or counts.dtype != np.int32:
            return "its bias is not an int32 constant"
        result_scale = op.output.quantization.scale if op.output.quantization is not None else scale
        if np.any((counts % steps != 0) & (scale > result_scale)):
            return "its bias needs a finer scale than theirs would be"
        coarse = constant(bias.name, np.round(counts / steps).astype(np.int32), parameters(scale))
        graph.set_input(op, 2, coarse)
    _read_narrow(graph, op, narrow)
    notes.warn(op, f"{_needs(type, FORMATS[type].runtime)}; an int8 result may be another by one level")
    return None


def _needs(type: str, runtime: str) -> str:
    return f"its weights are {type}, which takes ai-edge-litert {runtime} or newer, or a runtime as new"


def _read_narrow(graph: Graph, op: Op, weights: Tensor) -> None:
    graph.set_input(op, 1, weights)
    op.code = replace(op.code, version=max(op.code.version, FORMATS[weights.type].fully_connected))


def _narrow_constant(old: Tensor, levels: Array, scale: Array, type: str) -> Tensor:
    """Makes a constant of levels [O, I] with one scale for each of the O output channels."""
    buffer = Buffer(pack_levels(levels, NARROW_TYPES[type]))
    return Tensor(old.name, type, levels.shape, buffer, quantization=parameters(scale))
