"""LceQuantize(QUANTIZE(x)) of a binary convolution's output x -> LceQuantize(x + scale / 2): it can write bits.

A level is below the zero point where x / scale rounds to -1 or less. At -1/2 it does, for halves are rounded away from
zero.
"""

from __future__ import annotations

import numpy as np

from litebnn.contract import LCE_QUANTIZE
from litebnn.graph import Graph, Op, builtin_op, constant
from litebnn.rewriting.affine import LEAST
from litebnn.rewriting.bconv import takes_affine
from litebnn.rewriting.build import derived, like
from litebnn.rewriting.each import each
from litebnn.rewriting.int8 import INT8_MIN, is_int8
from litebnn.rewriting.notes import Notes


@each(LCE_QUANTIZE)
def sign_before_quantize(graph: Graph, sign: Op, notes: Notes) -> bool:
    levels = sign.input(0)
    quantize = graph.producer(levels)
    if quantize is None or quantize.name != "QUANTIZE" or not is_int8(levels) or graph.sole_consumer(levels) is None:
        return False
    scale, zero_point = levels.per_tensor_quantization or (1.0, 0)
    x = quantize.input(0)
    # On a grid that ends at zero no level is below it, whatever x is.
    if zero_point == INT8_MIN or not takes_affine(graph, x):
        return False
    for suffix, addend in (("/half_a_step", np.float32(scale) / 2), ("/strict", -LEAST)):
        shifted = like(x, derived(levels.name, suffix))
        added = constant(derived(shifted.name, "/addend"), np.full(1, addend, np.float32))
        graph.insert(builtin_op("ADD", [x, added], shifted), before=sign)
        x = shifted
    graph.set_input(sign, 0, x)
    graph.remove(quantize)
    return True
