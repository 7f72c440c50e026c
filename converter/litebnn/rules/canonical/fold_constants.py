"""Ops on constants become constants, if the file does not grow much, and for binary layers in any case.

Exporters leave the sign, clip or scale of a large kernel as ops, and in files of half precision a DEQUANTIZE follows
every constant. Weights stored as int8 or half precision are kept for a layer that is not binary.
"""

from __future__ import annotations

import math

from litebnn.analysis.constants import constants_upstream, does_not_grow
from litebnn.analysis.padding import without_zeros
from litebnn.analysis.transfers import SELECTS
from litebnn.analysis.weights import BINARY_LAYERS
from litebnn.graph import Graph, Op, Tensor, facts
from litebnn.rules.build.notes import Notes
from litebnn.rules.build.ops import fold_input
from litebnn.rules.build.signs import holds_signs


def fold_constants(graph: Graph, notes: Notes) -> bool:
    changed = False
    # The loop visits the ops in order of execution. At each op, it is then known which inputs depend on the model's
    # inputs.
    unknown: set[Tensor] = set()
    for op in graph.ops:
        changed |= _fold(graph, op, unknown)
    return changed


def _fold(graph: Graph, op: Op, unknown: set[Tensor]) -> bool:
    """Replaces inputs of an op that are computed from constants by their values.

    If the op's outputs depend on the model's inputs, they are added to `unknown`.
    """
    computed = [output for output in op.outputs if constants_upstream(graph, output, unknown) is None]
    unknown.update(computed)
    # If all outputs of the op are computed from constants, the outputs can be replaced, so the op's inputs need not be
    # replaced.
    if not computed:
        return False
    changed = False
    for index, tensor in enumerate(op.inputs):
        if tensor is None or tensor.is_constant or tensor in unknown or not _is_worth_folding(graph, op, index):
            continue
        changed |= fold_input(graph, op, index)
    return changed


def _is_worth_folding(graph: Graph, op: Op, index: int) -> bool:
    tensor = op.input(index)
    may_become_binary = op.name in (*BINARY_LAYERS, "TRANSPOSE_CONV")
    if may_become_binary and holds_signs(graph, without_zeros(graph, op.input(facts(op).data))[0]):
        return True
    # Small operands are always folded, because a sign or a binary layer can absorb a number or a vector of channels.
    # The operands of a select may be large, but usually have the same number in all elements.
    is_small = op.name in SELECTS or math.prod(tensor.shape) == max(tensor.shape, default=1)
    return (index not in facts(op).constants and is_small) or does_not_grow(graph, tensor)
