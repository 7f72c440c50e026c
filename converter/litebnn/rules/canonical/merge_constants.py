"""Constants that are equal become one."""

from __future__ import annotations

import hashlib

import numpy as np

from litebnn.graph import Graph, Tensor
from litebnn.rules.build.notes import Notes


def merge_constants(graph: Graph, notes: Notes) -> bool:
    changed = False
    first: dict[tuple[str, tuple[int, ...], bytes], Tensor] = {}
    for op in list(graph.ops):
        for index, tensor in enumerate(op.inputs):
            if tensor is None or tensor.array is None or tensor.quantization is not None or graph.is_output(tensor):
                continue
            same = first.setdefault((tensor.type, tensor.shape, _digest(tensor)), tensor)
            if same is not tensor:
                graph.set_input(op, index, same)
                changed = True
    return changed


def _digest(tensor: Tensor) -> bytes:
    assert tensor.buffer.data is not None
    return hashlib.blake2b(np.ascontiguousarray(tensor.buffer.data).data, digest_size=16).digest()
