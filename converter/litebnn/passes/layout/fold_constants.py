"""What is computed from constants -> constants, where the file does not grow much, and for binary layers in any case.

Exporters leave the sign, clip or scale of a large kernel as ops, and in files of half precision every constant stands
behind a DEQUANTIZE. Weights that are stored as int8 or half precision stay so for a layer that is not binary.
"""

from __future__ import annotations

import math

from litebnn.graph import Graph, Op, Tensor, facts
from litebnn.rewriting.constants import constants_behind, does_not_grow, fold_input
from litebnn.rewriting.notes import Notes
from litebnn.rewriting.padding import without_zeros
from litebnn.rewriting.signs import holds_signs

# What these pick from is one number over and over, where it is as large as the result.
_PICKED_FROM = ("SELECT", "SELECT_V2")
_LAYERS = ("CONV_2D", "FULLY_CONNECTED", "BATCH_MATMUL", "TRANSPOSE_CONV")


def fold_constants(graph: Graph, notes: Notes) -> bool:
    changed = False
    # In order of execution, so that each op sees at once what those in front of it could not be computed from.
    unknown: set[Tensor] = set()
    for op in graph.ops:
        changed |= _fold(graph, op, unknown)
    return changed


def _fold(graph: Graph, op: Op, unknown: set[Tensor]) -> bool:
    """Folds what an op reads, and adds what it writes to what is unknown."""
    computed = [output for output in op.outputs if constants_behind(graph, output, unknown) is None]
    unknown.update(computed)
    # What only other constants are computed from need not be known itself.
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
    if op.name in _LAYERS and holds_signs(graph, without_zeros(graph, op.input(facts(op).data))[0]):
        return True
    # The passes look for numbers, and for vectors of channels, in ops that a sign or a binary layer can take in.
    is_small = op.name in _PICKED_FROM or math.prod(tensor.shape) == max(tensor.shape, default=1)
    return (index not in facts(op).constants and is_small) or does_not_grow(graph, tensor)
