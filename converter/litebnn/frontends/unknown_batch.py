"""Makes the batch size of a model unknown, by comparing two exports of the model with different batch sizes.

An exporter that supports unknown sizes in only some ops can then export every model.
"""

from __future__ import annotations

from itertools import zip_longest

import numpy as np

from litebnn.flatbuffer import read_model, write_model
from litebnn.graph import Op, Tensor, constant


def with_unknown_batch(first: bytes, second: bytes, sizes: tuple[int, int]) -> bytes | None:
    """The .tflite file `first`, with an unknown batch size.

    Every size that is different in the file `second` depends on the batch size, and is unknown in the result. Its
    `shape` has the size for a batch of one, as is usual in .tflite files.

    Args:
        first: the model with the batch size `sizes[0]`.
        second: the same model with the batch size `sizes[1]`.

    Returns:
        The file; None if the models differ in more than shapes.
    """
    model, other = read_model(first), read_model(second)
    graph, twin = model.graphs[0], other.graphs[0]
    if len(model.graphs) > 1 or not all(_are_alike(*pair) for pair in zip_longest(graph.ops, twin.ops)):
        return None
    tensors = list(graph.all_tensors())
    twins = dict(zip(tensors, twin.all_tensors(), strict=True))
    for op in graph.ops:
        for place, tensor in enumerate(op.inputs):
            if tensor is None or not tensor.is_constant or _equal(tensor, twins[tensor]):
                continue
            if op.name != "RESHAPE" or place != 1 or tensor.shape != twins[tensor].shape:
                return None
            values, others = np.asarray(tensor.array), np.asarray(twins[tensor].array)
            if np.count_nonzero(values != others) != 1:
                return None
            graph.set_input(op, 1, constant(tensor.name, np.where(values == others, values, -1).astype(values.dtype)))
            op.options.new_shape = None
    for tensor in tensors:
        dims, twin_dims = tensor.shape, twins[tensor].shape
        if tensor.is_constant or dims == twin_dims:
            continue
        steps = [(b - a) // (sizes[1] - sizes[0]) for a, b in zip(dims, twin_dims, strict=True)]
        tensor.shape_signature = tuple(-1 if step else size for size, step in zip(dims, steps, strict=True))
        tensor.shape = tuple(size - step * (sizes[0] - 1) for size, step in zip(dims, steps, strict=True))
    return write_model(model)


def _are_alike(op: Op | None, twin: Op | None) -> bool:
    """True for ops of the same kind, which compute the same on tensors of other shapes."""
    if op is None or twin is None or op.code != twin.code or op.custom_options != twin.custom_options:
        return False
    options, others = (vars(each.options) | {"new_shape": None} for each in (op, twin))
    return str(options) == str(others) and len(op.inputs) == len(twin.inputs)


def _equal(tensor: Tensor, twin: Tensor) -> bool:
    return tensor.shape == twin.shape and np.array_equal(tensor.buffer.data, twin.buffer.data)  # type: ignore[arg-type]
