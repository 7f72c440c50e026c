"""LceQuantize of a binary convolution's output x that has been rounded to a grid -> LceQuantize(x - threshold).

The sign turns between two levels of the grid, and x is rounded to the upper one from the middle between the two on: so
is x in the middle above zero, while below it is rounded down, for halves are rounded away from zero. What only moves
values between grid and sign does the same to floats.
"""

from __future__ import annotations

import copy

import numpy as np

from litebnn.contract import LCE_QUANTIZE
from litebnn.graph import Graph, Op, OpCode, Tensor, builtin_op, constant, facts
from litebnn.rewriting.affine import LEAST, AffineChain, affine_chain
from litebnn.rewriting.bconv import takes_affine
from litebnn.rewriting.build import derived, like
from litebnn.rewriting.each import each
from litebnn.rewriting.int8 import numbers_of_grid
from litebnn.rewriting.notes import Notes


@each(LCE_QUANTIZE)
def sign_before_quantize(graph: Graph, sign: Op, notes: Notes) -> bool:
    chain = affine_chain(graph, sign.input(0))
    ops = _from_quantize(graph, chain.source)
    if not ops or not takes_affine(graph, ops[0].input(0)):
        return False
    turn = _turn(ops[0].output, chain)
    if turn is None:
        return False
    rising, threshold, is_strict = turn
    x = ops[0].input(0)
    for op in ops[1:]:
        if op.name != "DEQUANTIZE":
            x = _moved(graph, op, x, before=sign)
    name = sign.input(0).name
    level = constant(derived(name, "/threshold"), np.full(1, threshold))
    x = _subtracted(graph, *((x, level) if rising else (level, x)), derived(name, "/difference"), before=sign)
    if is_strict:
        least = constant(derived(name, "/least"), np.full(1, LEAST))
        x = _subtracted(graph, x, least, derived(name, "/strict"), before=sign)
    graph.set_input(sign, 0, x)
    for op in (*chain.ops, *reversed(ops)):
        graph.remove(op)
    return True


def _from_quantize(graph: Graph, tensor: Tensor) -> list[Op]:
    """The QUANTIZE whose levels are in `tensor`, and what nobody else reads between the two, in order of execution."""
    ops: list[Op] = []
    while (op := graph.producer(tensor)) is not None and graph.sole_consumer(tensor) is not None:
        ops.insert(0, op)
        if op.name == "QUANTIZE":
            return ops if op.input(0).type == "FLOAT32" else []
        if op.name != "DEQUANTIZE" and not (facts(op).moves and facts(op).on_signs):
            break
        tensor = op.input(0)
    return []


def _turn(levels: Tensor, chain: AffineChain) -> tuple[bool, np.float32, bool] | None:
    """Whether the sign rises with the numbers before they are rounded, at which of them, and whether only above it.

    None where it is the same for all levels, or where channels differ.
    """
    numbers, affines = numbers_of_grid(levels), set(zip(chain.scale, chain.shift, strict=True))
    if numbers is None or len(affines) != 1:
        return None
    [(scale, shift)] = affines
    values = numbers * scale + shift
    above = values > 0 if chain.strict else values >= 0
    if above[0] == above[-1]:
        return None
    step, rising = numbers[1] - numbers[0], bool(above[-1])
    upper = numbers[np.argmax(above == above[-1])]
    return rising, np.float32(upper - step / 2), bool(upper <= 0) == rising


def _moved(graph: Graph, op: Op, x: Tensor, *, before: Op) -> Tensor:
    """What the op does to levels, done to float numbers."""
    result = like(op.output, derived(op.output.name, "/of_floats"), type="FLOAT32")
    graph.insert(Op(OpCode(op.name), [x, *op.inputs[1:]], [result], copy.copy(op.options)), before=before)
    return result


def _subtracted(graph: Graph, left: Tensor, right: Tensor, name: str, *, before: Op) -> Tensor:
    difference = like(right if left.is_constant else left, name)
    graph.insert(builtin_op("SUB", [left, right], difference), before=before)
    return difference
