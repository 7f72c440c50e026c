"""Replaces weights that a source model computes at run time by the constants that the converter computes, for
verification."""

from __future__ import annotations

import numpy as np

from litebnn.errors import ConversionError, printable
from litebnn.flatbuffer import read_model, write_model
from litebnn.graph import Op, Tensor, facts
from litebnn.rules.build.ops import fold_computed
from litebnn.runtime.intermediates import interpreter_for, with_outputs
from litebnn.verify.divergence import TOLERANCE, difference
from litebnn.verify.samples import run, samples_for


def with_folded_weights(purpose: str, source: bytes) -> bytes:
    """The source model with computed weights replaced by constants, so that a runtime's rounding of weights does not
    affect the layers.

    The mean of millions of weights, used as a scale, differs by 10⁻⁴ between runtimes. Batch norms amplify this
    difference.

    Args:
        purpose: the purpose of the comparison, for messages.
    Raises:
        ConversionError: the installed runtime computes other weights from the same constants.
    """
    folded = read_model(source)
    changed = [fold_computed(graph, op) for graph in folded.graphs for op in graph.ops]
    if not any(changed):
        return source
    model = read_model(source)
    pairs = [
        (computed, ours)
        for before, after in zip(model.graphs[0].ops, folded.graphs[0].ops, strict=True)
        for computed, ours in zip(_weights(before), _weights(after), strict=True)
        if not computed.is_constant and ours.is_constant
    ]
    if pairs:
        interpreter = interpreter_for(purpose, with_outputs(model, [computed for computed, _ in pairs]))
        theirs = run(interpreter, samples_for(purpose, model, None, count=1))
        for (computed, ours), values in zip(pairs, theirs, strict=True):
            assert ours.array is not None
            gap = difference(values.reshape(np.shape(ours.array)), ours.array)
            if gap > TOLERANCE:
                raise ConversionError(
                    f'the weights "{printable(computed.name)}" that are computed from constants are off by {gap:.1e} '
                    "of the largest that the runtime computes"
                )
    return write_model(folded)


def _weights(op: Op) -> list[Tensor]:
    inputs = (op.optional(index) for index in facts(op).constants)
    return [tensor for tensor in inputs if tensor is not None]
