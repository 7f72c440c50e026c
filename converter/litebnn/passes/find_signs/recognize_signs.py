"""A sign, in any form that `rewriting.signs` knows -> LceQuantize, LceDequantize."""

from __future__ import annotations

import numpy as np

from litebnn.contract import LCE_DEQUANTIZE
from litebnn.graph import Graph, Op, Tensor, builtin_op, constant
from litebnn.rewriting.affine import LEAST
from litebnn.rewriting.build import custom_op, derived, like, pack_signs
from litebnn.rewriting.constants import is_computed_from_constants
from litebnn.rewriting.each import each
from litebnn.rewriting.int8 import quantize_op
from litebnn.rewriting.notes import Notes
from litebnn.rewriting.signs import Sign, find_sign


@each()
def recognize_signs(graph: Graph, op: Op, notes: Notes) -> bool:
    if len(op.outputs) != 1 or op.output.type not in ("FLOAT32", "INT8"):
        return False
    sign = find_sign(graph, op.output)
    if sign is None or sign.x.dims != op.output.dims or op.output.channels < 1:
        return False
    if is_computed_from_constants(graph, sign.x):
        return False
    bits = pack_signs(graph, _operand(graph, sign, op), derived(op.output.name, "/bits"), before=op)
    if op.output.type == "FLOAT32":
        graph.replace(op, custom_op(LCE_DEQUANTIZE, [bits], op.output))
    else:
        unpacked = like(op.output, derived(op.output.name, "/sign"), type="FLOAT32")
        graph.insert(custom_op(LCE_DEQUANTIZE, [bits], unpacked), before=op)
        graph.replace(op, quantize_op(unpacked, op.output))
    return True


def _operand(graph: Graph, sign: Sign, before: Op) -> Tensor:
    """The tensor whose `LceQuantize` is the sign: x or a difference, or the boolean itself."""
    name = before.output.name
    if sign.comparison is None:
        if sign.truth:
            return sign.x
        inverse = like(sign.x, derived(name, "/not"))
        graph.insert(builtin_op("LOGICAL_NOT", [sign.x], inverse), before=before)
        return inverse
    rising = sign.comparison in ("GREATER_EQUAL", "GREATER")
    operand = sign.x
    if not rising or sign.threshold != 0:
        operand = like(sign.x, derived(name, "/difference"))
        level = constant(derived(name, "/threshold"), np.asarray(sign.threshold, np.float32))
        sides = (sign.x, level) if rising else (level, sign.x)
        graph.insert(builtin_op("SUB", sides, operand), before=before)
    if sign.comparison in ("GREATER", "LESS"):
        above = like(sign.x, derived(name, "/above"))
        least = constant(derived(name, "/least"), np.asarray(LEAST, np.float32))
        graph.insert(builtin_op("SUB", [operand, least], above), before=before)
        return above
    return operand
