"""What keeps the sign of every value means nothing to a sign that reads it: sign(tanh(x)) is sign(x)."""

from __future__ import annotations

import numpy as np

from litebnn.contract import LCE_QUANTIZE, Activation
from litebnn.graph import Graph, Op, Tensor, facts
from litebnn.rewriting.build import split_activation
from litebnn.rewriting.each import each
from litebnn.rewriting.int8 import same_parameters, step_of
from litebnn.rewriting.match import fused_activation, uniform
from litebnn.rewriting.notes import Notes


@each(LCE_QUANTIZE)
def skip_sign_preserving_ops(graph: Graph, sign: Op, notes: Notes) -> bool:
    read = sign.input(0)
    source = graph.producer(read)
    if source is not None and fused_activation(source) == Activation.RELU_N1_TO_1 and _reads_signs(graph, read):
        split_activation(graph, source)
        return True
    if source is None or not _keeps_signs(source) or source.input(0).dims != read.dims:
        return False
    if not source.input(0).type == read.type == "FLOAT32" and not _clamps_levels(source):
        return False
    graph.set_input(sign, 0, source.input(0))
    return True


def _reads_signs(graph: Graph, tensor: Tensor) -> bool:
    """Whether the tensor is only ever read as signs."""
    readers = graph.consumers(tensor)
    return not graph.is_output(tensor) and all(reader.name == LCE_QUANTIZE for reader in readers)


def _clamps_levels(op: Op) -> bool:
    """Whether a RELU_N1_TO_1 leaves levels below zero below it, which rounding does in no other op."""
    return op.name == "RELU_N1_TO_1" and same_parameters(op.input(0), op.output) and step_of(op.output) <= 1


def _keeps_signs(op: Op) -> bool:
    if op.name == "LEAKY_RELU":
        return bool(getattr(op.options, "alpha", 0) > 0)
    if op.name == "PRELU":
        slopes = op.input(1).array
        return slopes is not None and bool(np.all(slopes > 0))
    if op.name in ("MINIMUM", "MAXIMUM"):  # as clamps: not below zero from above, nor above zero from below
        limit = uniform(op.input(1))
        return limit is not None and (limit > 0 if op.name == "MINIMUM" else limit < 0)
    return facts(op).keeps_signs
