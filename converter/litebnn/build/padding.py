"""New PADV2 ops of numbers and of packed signs."""

from __future__ import annotations

import numpy as np

from litebnn.analysis.padding import word_of_padding
from litebnn.build.ops import custom_op
from litebnn.build.thresholds import pack_signs
from litebnn.contract import LCE_DEQUANTIZE
from litebnn.graph import Array, Graph, Op, Tensor, builtin_op, constant, derived, like


def pad_with(graph: Graph, source: Tensor, amounts: Array, value: float, *, before: Op) -> Tensor:
    """Inserts a PADV2 of `source` with amounts int [rank, 2], and returns its output."""
    dims = [size if size < 0 else size + int(sum(a)) for size, a in zip(source.dims, amounts, strict=True)]
    padded = like(source, derived(source.name, "/padded"), dims=dims)
    inputs = [
        source,
        constant(derived(padded.name, "/amounts"), amounts.astype(np.int32)),
        constant(derived(padded.name, "/value"), np.asarray(value, np.int32 if source.type == "INT32" else np.float32)),
    ]
    graph.insert(builtin_op("PADV2", inputs, padded), before=before)
    return padded


def pad_packed(graph: Graph, bits: Tensor, channels: int, amounts: Array, value: int, *, before: Op) -> Tensor:
    """Inserts the padding of packed signs with +1 or -1 and amounts int [rank, 2], and returns its output."""
    word = word_of_padding(channels, value)
    if word is not None:
        return pad_with(graph, bits, amounts, word, before=before)
    signs = like(bits, derived(bits.name, "/signs"), type="FLOAT32", dims=(*bits.dims[:-1], channels))
    graph.insert(custom_op(LCE_DEQUANTIZE, [bits], signs), before=before)
    padded = pad_with(graph, signs, amounts, value, before=before)
    return pack_signs(graph, padded, derived(padded.name, "/bits"), before=before)
