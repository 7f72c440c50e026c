"""A TRANSPOSE in front of a flattened image -> the columns of the dense layers that read it in another order.

Channel-first networks flatten [C, H, W]. Behind a layer that computes channel-last there is a TRANSPOSE for it, which
keeps bits from passing.
"""

from __future__ import annotations

import numpy as np

from litebnn.graph import Graph, Op, Tensor, constant, facts
from litebnn.rewriting.build import derived
from litebnn.rewriting.constants import ON_ELEMENTS
from litebnn.rewriting.each import each
from litebnn.rewriting.match import transpose_order, uniform
from litebnn.rewriting.notes import Notes

_MOST_TENSORS = 32


@each("RESHAPE")
def permute_features(graph: Graph, op: Op, notes: Notes) -> bool:
    turn = graph.producer(op.input(0))
    order = None if turn is None or turn.name != "TRANSPOSE" else transpose_order(turn)
    if turn is None or order is None or order[0] != 0 or min(op.input(0).dims) < 1:
        return False
    batch, *features = turn.input(0).dims
    size = int(np.prod(features))
    if op.output.dims != (batch, size):
        return False
    found = _readers(graph, op.output, size)
    if found is None:
        return False
    readers, reached = found
    # Feature i of the flattened image is feature columns[i] of the one that is not turned.
    columns = np.arange(size).reshape(features).transpose([axis - 1 for axis in order[1:]]).reshape(-1)
    own = np.argsort(columns)
    for reader, index in readers:
        values = reader.input(index).array
        assert values is not None
        permuted = constant(derived(reader.input(index).name, "/permuted"), np.ascontiguousarray(values[..., own]))
        graph.set_input(reader, index, permuted)
    graph.set_input(op, 0, turn.input(0))
    for tensor in reached:  # who compares two models by the names of tensors must not take these for the source's
        tensor.name = derived(tensor.name, "/permuted")
    return True


def _readers(graph: Graph, flat: Tensor, size: int) -> tuple[list[tuple[Op, int]], list[Tensor]] | None:
    """The ops with a constant for each feature, up to the dense layers, and which input that is; and all features.

    None where something else reads the features, or somebody outside sees them.
    """
    found: dict[tuple[Op, int], None] = {}
    reached = [flat]
    for tensor in reached:
        if graph.is_output(tensor) or len(reached) > _MOST_TENSORS:
            return None
        for op in graph.consumers(tensor):
            constants = _constants_of_features(op, tensor, reached, size)
            if constants is None:
                return None
            found.update(dict.fromkeys((op, index) for index in constants))
            if not facts(op).layer and op.output not in reached:
                reached.append(op.output)
    return list(found), reached


def _constants_of_features(op: Op, features: Tensor, reached: list[Tensor], size: int) -> list[int] | None:
    """Which inputs of `op` are constants with a number for each feature; None where it needs them in this order."""
    if op.name == "FULLY_CONNECTED":
        weights = op.input(1)
        plain = op.inputs[0] is features and weights.array is not None and op.options.weights_format == 0
        return [1] if plain and weights.quantization is None and weights.channels == size else None
    if op.name not in ON_ELEMENTS or op.output.dims != features.dims:
        return None
    constants: list[int] = []
    for index, tensor in enumerate(op.inputs):
        if tensor is None:
            return None
        if tensor.array is not None and tensor.quantization is None and tensor.shape[-1:] == (size,):
            constants.append(index)
        elif tensor not in reached and uniform(tensor) is None:
            return None
    return constants
