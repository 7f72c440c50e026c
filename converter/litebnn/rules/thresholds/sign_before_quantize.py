"""A sign of a binary convolution's output x after rounding to a grid -> the sign of x with another threshold.

Ops between the grid and the sign that only move values are applied to the floats instead.
"""

from __future__ import annotations

import copy
from dataclasses import replace

from litebnn.analysis.grids import first_rounded_to, next_of_grid, numbers_of_grid
from litebnn.analysis.match import SIGNS
from litebnn.analysis.thresholds import threshold_of
from litebnn.build.bconv import takes_affine
from litebnn.build.each import each
from litebnn.build.notes import Notes
from litebnn.build.thresholds import sign_op
from litebnn.graph import Graph, Op, OpCode, Tensor, derived, facts, like


@each(*SIGNS)
def sign_before_quantize(graph: Graph, sign: Op, notes: Notes) -> bool:
    threshold, ops = threshold_of(sign), _from_quantize(graph, sign.input(0))
    if threshold is None or not ops or not takes_affine(graph, ops[0].input(0)):
        return False
    x, levels = ops[0].input(0), ops[0].output
    numbers = numbers_of_grid(levels)
    if numbers is None or not threshold.is_uniform:
        return False
    if not numbers[0] < threshold.level[0] <= numbers[-1]:  # the sign is constant for all levels
        return False
    first = first_rounded_to(next_of_grid(threshold.level, levels), levels)
    for op in ops[1:]:
        if op.name != "DEQUANTIZE":
            x = _moved(graph, op, x, before=sign)
    graph.replace(sign, sign_op(x, sign.output, replace(threshold, level=first)))
    for op in reversed(ops):
        graph.remove(op)
    return True


def _from_quantize(graph: Graph, tensor: Tensor) -> list[Op]:
    """The QUANTIZE whose levels `tensor` has, and the ops between them without other consumers, in order."""
    ops: list[Op] = []
    while (op := graph.producer(tensor)) is not None and graph.sole_consumer(tensor) is not None:
        ops.insert(0, op)
        if op.name == "QUANTIZE":
            return ops if op.input(0).type == "FLOAT32" else []
        if op.name != "DEQUANTIZE" and not (facts(op).moves and facts(op).on_signs):
            break
        tensor = op.input(0)
    return []


def _moved(graph: Graph, op: Op, x: Tensor, *, before: Op) -> Tensor:
    """Applies to floats an op that moves levels."""
    result = like(op.output, derived(op.output.name, "/of_floats"), type="FLOAT32")
    graph.insert(Op(OpCode(op.name), [x, *op.inputs[1:]], [result], copy.copy(op.options)), before=before)
    return result
