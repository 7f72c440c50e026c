"""Transposes, which exporters from channel-first frameworks put around convolutions, go in front of signs and cancel.

A sign is packed along its last axis, so the axis has to be the channels before it is packed.
"""

from __future__ import annotations

import numpy as np

from litebnn.contract import LCE_DEQUANTIZE, LCE_QUANTIZE
from litebnn.graph import Array, Graph, Op, constant
from litebnn.rewriting.build import custom_op, derived, like, pack_signs
from litebnn.rewriting.each import each
from litebnn.rewriting.match import bits_of
from litebnn.rewriting.notes import Notes


@each("TRANSPOSE")
def move_transposes(graph: Graph, op: Op, notes: Notes) -> bool:
    return _before_sign(graph, op) or _merge(graph, op)


def _order(op: Op) -> Array | None:
    """int [rank] of a TRANSPOSE, where it is a constant permutation."""
    order = op.input(1).array
    rank = len(op.output.dims)
    valid = order is not None and np.array_equal(np.sort(order.reshape(-1)), np.arange(rank))
    return order.reshape(-1) if valid and order is not None else None


def _before_sign(graph: Graph, op: Op) -> bool:
    """TRANSPOSE of an unpacked sign -> sign of a TRANSPOSE."""
    bits = bits_of(graph, op.input(0))
    sign = graph.producer(bits)
    if sign is None or sign.name != LCE_QUANTIZE or _order(op) is None or op.output.channels < 1:
        return False
    source = sign.input(0)
    turned = like(op.output, derived(op.output.name, "/turned"), type=source.type)
    turned.quantization = source.quantization
    graph.insert(Op(op.code, [source, op.inputs[1]], [turned], op.options), before=op)
    packed = pack_signs(graph, turned, derived(op.output.name, "/bits"), before=op)
    graph.replace(op, custom_op(LCE_DEQUANTIZE, [packed], op.output))
    return True


def _merge(graph: Graph, op: Op) -> bool:
    """TRANSPOSE of a TRANSPOSE -> one, or none."""
    first = graph.producer(op.input(0))
    if first is None or first.name != "TRANSPOSE":
        return False
    inner, outer = _order(first), _order(op)
    if inner is None or outer is None:
        return False
    order = inner[outer]
    if not np.array_equal(order, np.arange(order.size)):
        merged = constant(derived(op.output.name, "/order"), order.astype(np.int32))
        graph.replace(op, Op(op.code, [first.inputs[0], merged], [op.output], op.options))
        return True
    if graph.is_output(op.output):
        return False
    graph.redirect(op.output, first.input(0))
    graph.remove(op)
    return True
