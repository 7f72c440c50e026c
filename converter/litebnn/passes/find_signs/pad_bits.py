"""PADV2 with ±1 of an unpacked sign -> the same PADV2 on the bits."""

from __future__ import annotations

import numpy as np

from litebnn.contract import BITS_PER_WORD, LCE_DEQUANTIZE
from litebnn.graph import Graph, Op, builtin_op, constant
from litebnn.rewriting.build import custom_op, derived, packed_like
from litebnn.rewriting.each import each
from litebnn.rewriting.match import bits_of, uniform
from litebnn.rewriting.notes import Notes


@each("PADV2")
def pad_bits(graph: Graph, op: Op, notes: Notes) -> bool:
    bits = bits_of(graph, op.input(0))
    amounts, value = op.input(1).array, uniform(op.input(2))
    if bits is None or amounts is None or value is None or abs(value) != 1.0:
        return False
    if np.any(amounts[-1] != 0) or op.output.channels != op.input(0).channels:
        return False
    # The word for -1 also sets padding bits, so it will do only where there are none.
    if value == -1.0 and op.output.channels % BITS_PER_WORD:
        return False
    padded = packed_like(op.output, derived(op.output.name, "/bits"))
    word = constant(derived(op.output.name, "/pad"), np.asarray(0 if value == 1.0 else -1, np.int32))
    graph.insert(builtin_op("PADV2", [bits, op.inputs[1], word], padded), before=op)
    graph.replace(op, custom_op(LCE_DEQUANTIZE, [padded], op.output))
    return True
