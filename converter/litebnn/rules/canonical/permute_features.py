"""A TRANSPOSE before a flattened image becomes a permutation of the columns of the dense layers that read the image.

Channel-first networks flatten [C, H, W]. After a channel-last layer this needs a TRANSPOSE, which cannot be applied to
packed bits.
"""

from __future__ import annotations

import numpy as np

from litebnn.analysis.constants import ON_ELEMENTS
from litebnn.analysis.match import transpose_order, uniform
from litebnn.analysis.walks import MOST_OPS
from litebnn.graph import Graph, Op, Reshaped, Tensor, Transposed, constant, derived, facts, then
from litebnn.rules.build.notes import Notes, each


@each("RESHAPE")
def permute_features(graph: Graph, op: Op, notes: Notes) -> bool:
    turn = graph.producer(op.input(0), "TRANSPOSE")
    order = None if turn is None else transpose_order(turn)
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
    # Feature i of the transposed and flattened image is feature columns[i] of the image flattened without a TRANSPOSE.
    columns = np.arange(size).reshape(features).transpose([axis - 1 for axis in order[1:]]).reshape(-1)
    own = np.argsort(columns)
    for reader, index in readers:
        values = reader.input(index).array
        assert values is not None
        permuted = constant(derived(reader.input(index).name, "/permuted"), np.ascontiguousarray(values[..., own]))
        graph.set_input(reader, index, permuted)
    turned, own_axes = op.input(0).dims, tuple(np.argsort(order).tolist())
    moves = Reshaped((batch, size), turned), Transposed(own_axes), Reshaped((batch, *features), (batch, size))
    graph.set_input(op, 0, turn.input(0))
    for tensor in reached:
        tensor.name, tensor.origin = derived(tensor.name, "/permuted"), then(tensor, *moves)
    return True


def _readers(graph: Graph, flat: Tensor, size: int) -> tuple[list[tuple[Op, int]], list[Tensor]] | None:
    """A feature is an element of the flattened image. Returns the ops with a constant that has a number for each
    feature, and the index of this constant among their inputs. Also returns the tensors of features between these ops.
    None if another op reads the features, or if they are outputs.
    """
    found: dict[tuple[Op, int], None] = {}
    reached = [flat]
    for tensor in reached:
        if graph.is_output(tensor) or len(reached) > MOST_OPS:
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
    """Returns the indices of the inputs of `op` that are constants with a number for each feature. None if `op` depends
    on the order of the features in another way."""
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
