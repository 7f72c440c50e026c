"""The steps before and after a rewrite of a model's graphs."""

from __future__ import annotations

import hashlib

import numpy as np

from litebnn.graph.graph import Buffer, Model
from litebnn.graph.origin import begin_origins, write_origins

CONTROL_DEPENDENCIES = "model_control_dependencies"


def begin_rewriting(model: Model) -> None:
    """Drops metadata that would name other ops after a rewrite, and records where each tensor comes from."""
    # A rewrite changes the indices of ops. Without control dependencies, runtimes keep ops with side effects in the
    # order of the file.
    model.metadata = [(name, buffer) for name, buffer in model.metadata if name != CONTROL_DEPENDENCIES]
    begin_origins(model)


def finish_rewriting(model: Model) -> None:
    """Removes tensors, buffers and operator codes that nothing refers to any more. For each tensor, stores in the model
    from which tensor of the source model it comes."""
    compact(model)
    write_origins(model)


def compact(model: Model) -> None:
    """Removes tensors, buffers and operator codes that nothing refers to. Equal constants then share a buffer."""
    empty = Buffer()
    by_content: dict[bytes, Buffer] = {}
    kept: dict[Buffer, None] = {empty: None}
    for graph in model.graphs:
        used = {t for op in graph.ops for t in (*op.inputs, *op.outputs, *(op.intermediates or ())) if t is not None}
        used.update(graph.inputs, graph.outputs, graph.pinned)
        used.update([companion for tensor in used for companion in tensor.companions])
        graph.tensors = [tensor for tensor in graph.all_tensors() if tensor in used]
        for tensor in graph.tensors:
            data = tensor.buffer.data
            if data is None or data.size == 0:
                tensor.buffer = empty
            elif not tensor.buffer.large:
                tensor.buffer = by_content.setdefault(
                    hashlib.blake2b(np.ascontiguousarray(data).data, digest_size=16).digest(), tensor.buffer
                )
            kept[tensor.buffer] = None
    for _, buffer in model.metadata:
        kept[buffer] = None
    for buffer in model.metadata_buffers or ():
        kept[buffer] = None
    model.buffers = list(kept)
    model.codes = list(dict.fromkeys(op.code for op in model.ops()))
