"""PADV2 with ±1 of an unpacked sign -> PADV2 of the bits."""

from __future__ import annotations

import numpy as np

from litebnn.contract import LCE_DEQUANTIZE, LCE_QUANTIZE
from litebnn.graph import Graph, Op
from litebnn.rewriting.build import custom_op
from litebnn.rewriting.each import each
from litebnn.rewriting.match import bits_of
from litebnn.rewriting.notes import Notes
from litebnn.rewriting.padding import constant_padding, pad_packed


@each("PADV2")
def pad_bits(graph: Graph, op: Op, notes: Notes) -> bool:
    bits, padding = bits_of(graph, op.input(0)), constant_padding(op)
    if bits is None or padding is None or abs(padding.value) != 1.0 or np.any(padding.amounts[-1]):
        return False
    # What pads signs because no word pads their bits is packed right behind.
    only_reader = graph.sole_consumer(op.output)
    if op.output.type != "FLOAT32" or (only_reader is not None and only_reader.name == LCE_QUANTIZE):
        return False
    channels = op.output.channels
    if channels != op.input(0).channels:
        return False
    padded = pad_packed(graph, bits, channels, padding.amounts, int(padding.value), before=op)
    graph.replace(op, custom_op(LCE_DEQUANTIZE, [padded], op.output))
    return True
