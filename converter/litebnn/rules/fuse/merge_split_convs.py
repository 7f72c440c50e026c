"""A SPLIT of channels, a float CONV_2D of each part and a CONCATENATION become one CONV_2D with groups.

Exporters write grouped convolutions in this form. Runtimes have one op for them, without copies of the channels.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence

import numpy as np

from litebnn.analysis.match import floats, uniform
from litebnn.graph import Array, Graph, Op, Tensor, constant, derived
from litebnn.rules.build.notes import Notes, each
from litebnn.rules.build.ops import parts_of


@each("CONCATENATION")
def merge_split_convs(graph: Graph, op: Op, notes: Notes) -> bool:
    parts = [part for part in parts_of(graph, op.output) if graph.sole_consumer(part) is op]
    layers = [conv for part in parts if (conv := graph.producer(part, "CONV_2D")) is not None]
    if len(layers) < len(op.inputs) or any(not _are_alike(conv, layers[0]) for conv in layers):
        return False
    first, whole = layers[0], _split_for(graph, layers)
    weights, biases = (_joined(graph, [floats(conv.optional(i)) for conv in layers]) for i in (1, 2))
    if whole is None or weights is None or biases is None:
        return False
    filters = constant(derived(first.input(1).name, "/groups"), weights)
    bias = constant(derived(first.input(2).name, "/groups"), biases)
    grouped = Op(first.code, [whole, filters, bias], [op.output], copy.copy(first.options))
    graph.replace(op, grouped)
    notes.became(first, grouped)
    return True


def _are_alike(conv: Op, other: Op) -> bool:
    return conv.options == other.options and conv.output.dims == other.output.dims


def _joined(graph: Graph, values: Sequence[Array | None]) -> Array | None:
    """Concatenates constants along their first axis. None if one of them is None, or if their shapes differ."""
    known = [each for each in values if each is not None]
    if len(known) < len(values) or any(each.shape != known[0].shape or each.ndim == 0 for each in known):
        return None
    graph.spend(sum(each.size for each in known))
    return np.concatenate(known)


def _split_for(graph: Graph, convs: Sequence[Op]) -> Tensor | None:
    """Returns the tensor that a SPLIT divides evenly among the convolutions, in their order."""
    parts = [conv.input(0) for conv in convs]
    split = graph.producer(parts[0], "SPLIT")
    if split is None or len(split.outputs) != len(parts):
        return None
    whole, axis = split.optional(1), uniform(split.optional(0))
    if whole is None:
        return None
    in_order = all(part is output for part, output in zip(parts, split.outputs, strict=True))
    is_even = all(
        part.channels * len(parts) == whole.channels == conv.input(1).channels * len(parts)
        for part, conv in zip(parts, convs, strict=True)
    )
    return whole if in_order and is_even and axis in (-1, len(whole.dims) - 1) and whole.channels > 0 else None
