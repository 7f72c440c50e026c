"""Estimates how small the option `low_bit_weights` would make a file."""

from __future__ import annotations

from litebnn.analysis.quantization import undequantized
from litebnn.analysis.weights import PACKABLE, layer_weights, packed_weights, ternary_weights
from litebnn.graph import Graph, Model, Op, bits_of_type

# A smaller share of the file is not worth a line.
_LEAST_SHARE = 0.05
_BITS_OF_DENSE = 2


def smaller_file(model: Model, size: int) -> str | None:
    """One line that says how small `low_bit_weights` would make a file of `size` bytes; None if hardly smaller."""
    saved = [bytes for graph in model.graphs for op in graph.ops if (bytes := _saved_bytes(graph, op)) > 0]
    if sum(saved) < _LEAST_SHARE * size:
        return None
    layers = f"{len(saved)} layers" if len(saved) > 1 else "1 layer"
    return (
        f"low_bit_weights would make the file {_kilobytes(size - sum(saved))} kB instead of {_kilobytes(size)} kB: "
        f"the weights of {layers} are -alpha, 0 and alpha"
    )


def _kilobytes(size: int) -> str:
    return f"{max(size, 1000) / 1000:,.0f}"


def _saved_bytes(graph: Graph, op: Op) -> int:
    """The bytes that the option would save on a layer; 0 for other ops."""
    if op.name not in (*PACKABLE, "FULLY_CONNECTED") or op.output.type != "FLOAT32":
        return 0
    stored = undequantized(graph, op.input(1))
    weights = layer_weights(graph, op) if stored.is_constant else None
    if weights is None or not weights.size:
        return 0
    if op.name != "FULLY_CONNECTED":
        packed = packed_weights(op, weights)
        return 0 if packed is None else packed.saved_bytes(weights.size, stored.type)
    if ternary_weights(weights[:1]) is None or ternary_weights(weights) is None:
        return 0
    return weights.size * (bits_of_type(stored.type) - _BITS_OF_DENSE) // 8
