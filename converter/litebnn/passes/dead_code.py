"""Ops whose results nobody reads, and tensors and buffers that nothing refers to, go."""

from __future__ import annotations

import hashlib

import numpy as np

from litebnn.contract import CUSTOM_OPS
from litebnn.flatbuffer import Buffer, Graph, Model, Op
from litebnn.passes.notes import Notes

# Builtins that do more than compute their outputs, or whose ops refer to state or to other subgraphs.
_EFFECTS = {
    "ASSIGN_VARIABLE",
    "CALL",
    "CALL_ONCE",
    "CUSTOM",
    "DELEGATE",
    "HASHTABLE",
    "HASHTABLE_IMPORT",
    "IF",
    "MULTINOMIAL",
    "RANDOM_STANDARD_NORMAL",
    "RANDOM_UNIFORM",
    "READ_VARIABLE",
    "STABLEHLO_CASE",
    "STABLEHLO_COMPOSITE",
    "STABLEHLO_CUSTOM_CALL",
    "STABLEHLO_WHILE",
    "VAR_HANDLE",
    "WHILE",
}


def _is_pure(op: Op) -> bool:
    reads_state = any(tensor is not None and tensor.carried.isVariable for tensor in op.inputs)
    return not reads_state and (op.name in CUSTOM_OPS or op.code.builtin not in _EFFECTS)


def remove_dead_ops(graph: Graph, notes: Notes) -> bool:
    changed = False
    for op in reversed(list(graph.ops)):
        if op.outputs and _is_pure(op) and not any(graph.is_output(t) or graph.consumers(t) for t in op.outputs):
            graph.remove(op)
            changed = True
    return changed


def compact(model: Model) -> None:
    """Drops tensors, buffers and operator codes that nothing refers to; equal constants share a buffer."""
    empty = Buffer()
    by_content: dict[bytes, Buffer] = {}
    kept: dict[Buffer, None] = {empty: None}
    for graph in model.graphs:
        used = {
            t for op in graph.ops for t in (*op.inputs, *op.outputs, *(op.carried.intermediates or ())) if t is not None
        }
        used.update(graph.inputs, graph.outputs, graph.pinned)
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
