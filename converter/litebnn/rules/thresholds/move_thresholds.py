"""A threshold moves before monotone ops: sign(tanh(x · m + b)) is ±sign(x + b / m)."""

from __future__ import annotations

import numpy as np

from litebnn.analysis.affine import affine_of
from litebnn.analysis.match import SIGNS, fused_activation
from litebnn.analysis.thresholds import Threshold, threshold_of, upstream
from litebnn.build.bconv import takes_affine
from litebnn.build.each import each
from litebnn.build.notes import Notes
from litebnn.build.ops import split_activation
from litebnn.build.thresholds import sign_op
from litebnn.contract import ACTIVATION_RANGES, Activation
from litebnn.graph import Array, Graph, Op, Tensor, derived

_MOST_OPS = 256
# Ops across which a threshold moves by other rules.
_FOLLOWED = ("CONCATENATION", "DEQUANTIZE", "MAX_POOL_2D")


@each(*SIGNS)
def move_thresholds(graph: Graph, sign: Op, notes: Notes) -> bool:
    found, read = threshold_of(sign), sign.input(0)
    if found is None:
        return False
    producer = graph.producer(read)
    if producer is not None and _has_clamp(producer, found.level) and _only_signs_read(graph, read):
        return split_activation(graph, producer)
    ops, x, level, falls, is_rounded = _moved(graph, read, found.level)
    if takes_affine(graph, x):  # the layer fuses the affine ops
        first = next((i for i, op in enumerate(reversed(ops)) if not _is_affine(op)), len(ops))
        ops, x, level, falls, is_rounded = _moved(graph, read, found.level, len(ops) - first)
    if not ops or _stays(graph, ops, x, found):
        return False
    name = next((op.output.name for op in ops if _is_affine(op)), read.name)
    if len(ops) > 1 or not found.is_plain or not _is_addition(ops[0], x):
        name = derived(name, "/shifted")
    moved = Threshold(
        level, found.falls ^ falls, name, derived(name, "/threshold"), is_rounded=found.is_rounded or is_rounded
    )
    graph.replace(sign, sign_op(x, sign.output, moved))
    for op in ops:
        if not graph.consumers(op.output) and not graph.is_output(op.output):
            graph.remove(op)
    return True


def _moved(graph: Graph, x: Tensor, level: Array, most: int = _MOST_OPS) -> tuple[list[Op], Tensor, Array, Array, bool]:
    """The ops before which a threshold can move, the tensor there, its levels, the channels that fall, if rounded."""
    ops: list[Op] = []
    falls, is_rounded = np.zeros(1, np.bool_), False
    while len(ops) < most and (op := graph.producer(x)) is not None and op.inputs:
        source = next((t for t in op.inputs if t is not None and not t.is_constant), None)
        step = None if source is None else upstream(op, source, level)
        if source is None or step is None or (graph.sole_consumer(x) is None and (_is_affine(op) or np.any(level))):
            break
        level, falls, is_rounded = step[0], falls ^ step[1], is_rounded or not np.all(step[2])
        ops.append(op)
        x = source
    return ops, x, level, falls, is_rounded


def _has_clamp(op: Op, level: Array) -> bool:
    """True if a fused activation does not change which numbers reach the level; on a grid only RELU_N1_TO_1 does so."""
    activation = fused_activation(op)
    if op.output.type != "FLOAT32" and activation != Activation.RELU_N1_TO_1:
        return False
    low, high = ACTIVATION_RANGES[activation or Activation.NONE]
    return bool(activation and np.all((low < level) & (level <= high)))


def _is_affine(op: Op) -> bool:
    return op.name in ("ADD", "DIV", "MUL", "NEG", "SUB")


def _stays(graph: Graph, ops: list[Op], x: Tensor, found: Threshold) -> bool:
    """True if the sign reads a single addition, to which the threshold would be lowered again."""
    producer = graph.producer(x)
    goes_on = producer is not None and producer.name in _FOLLOWED
    return len(ops) == 1 and found.is_plain and not goes_on and _is_addition(ops[0], x)


def _is_addition(op: Op, x: Tensor) -> bool:
    affine = affine_of(op, x.channels, left=op.inputs[0] is x) if _is_affine(op) else None
    return affine is not None and bool(np.all(affine[0] == 1) and np.any(affine[1]))


def _only_signs_read(graph: Graph, tensor: Tensor) -> bool:
    return not graph.is_output(tensor) and all(reader.name in SIGNS for reader in graph.consumers(tensor))
