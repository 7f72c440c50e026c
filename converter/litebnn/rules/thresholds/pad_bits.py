"""PADV2 with ±1 of an unpacked sign -> PADV2 of the bits.

No constant word encodes -1 for over 32 channels that are not a multiple of 32. Then the float signs are padded, and
packed where a layer reads them.
"""

from __future__ import annotations

import numpy as np

from litebnn.analysis.match import bits_of
from litebnn.analysis.padding import constant_padding, word_of_padding
from litebnn.build.each import each
from litebnn.build.notes import Notes
from litebnn.build.ops import custom_op
from litebnn.build.padding import pad_with
from litebnn.contract import LCE_DEQUANTIZE
from litebnn.graph import Graph, Op


@each("PADV2")
def pad_bits(graph: Graph, op: Op, notes: Notes) -> bool:
    bits, padding = bits_of(graph, op.input(0)), constant_padding(op)
    if bits is None or padding is None or abs(padding.value) != 1.0 or np.any(padding.amounts[-1]):
        return False
    channels, value = op.output.channels, int(padding.value)
    word = word_of_padding(channels, value)
    if op.output.type != "FLOAT32" or channels != op.input(0).channels or word is None:
        return False
    padded = pad_with(graph, bits, padding.amounts, word, before=op)
    graph.replace(op, custom_op(LCE_DEQUANTIZE, [padded], op.output))
    return True
