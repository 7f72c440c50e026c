"""PADV2 with ±1 of an unpacked sign -> the same PADV2 on the bits."""

from __future__ import annotations

import numpy as np

from litebnn.contract import BITS_PER_WORD, DEQUANTIZE
from litebnn.graph import Graph, builtin_op, constant, packed_words
from litebnn.rewriting.build import custom_op, derived, like
from litebnn.rewriting.match import bits_of, uniform
from litebnn.rewriting.notes import Notes


def pad_bits(graph: Graph, notes: Notes) -> bool:
    changed = False
    for op in list(graph.ops):
        if op.name != "PADV2":
            continue
        bits = bits_of(graph, op.input(0))
        amounts, value = op.input(1).array, uniform(op.input(2))
        if bits is None or amounts is None or value is None or abs(value) != 1.0 or np.any(amounts[-1] != 0):
            continue
        # The word for -1 also sets padding bits, so it will do only where there are none.
        channels = op.output.channels
        if value == -1.0 and channels % BITS_PER_WORD:
            continue
        padded = like(
            op.output,
            derived(op.output.name, "/bits"),
            type="INT32",
            dims=(*op.output.dims[:-1], packed_words(channels)),
        )
        word = constant(derived(op.output.name, "/pad"), np.asarray(0 if value == 1.0 else -1, np.int32))
        graph.insert(builtin_op("PADV2", [bits, op.inputs[1], word], padded), before=op)
        graph.replace(op, custom_op(DEQUANTIZE, [padded], op.output))
        changed = True
    return changed
