"""Makes the model that a conversion with `assume_nonzero` should compute, for verification."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from litebnn.analysis.signs import find_sign
from litebnn.analysis.transfers import SELECTS
from litebnn.analysis.weights import binary_weights, layer_weights
from litebnn.build.notes import Layer, Notes
from litebnn.flatbuffer import read_model, write_model
from litebnn.graph import Graph, Op, begin_rewriting, builtin_op, constant, derived, facts, like
from litebnn.report.differences.exact_zeros import Assumed, AssumedSign
from litebnn.rules.thresholds.assume_nonzero import assume_nonzero


def as_assumed(source: bytes, layers: Collection[Layer]) -> Assumed:
    """The source model with signs that are +1 at their third value, and without the zeros in the weights of `layers`.

    Args:
        source: a `.tflite` file.
        layers: the layers of the source for the report of its conversion, which count the weights.
    """
    model = read_model(source)
    begin_rewriting(model)
    names = {layer.name for layer in layers if layer.zero_weights}
    notes = Notes(model)
    signs: list[AssumedSign] = []
    for graph in model.graphs:
        before = {*graph.ops}
        while assume_nonzero(graph, notes):
            pass
        if graph is model.graphs[0]:
            signs = [_described(graph, op) for op in graph.ops if op not in before and op.name in SELECTS]
        for op in list(graph.ops):
            if facts(op).layer and op.output.name in names:
                _replace_zeros(graph, op)
    return Assumed(write_model(model), tuple(signs), sum(layer.zero_weights for layer in layers))


def _described(graph: Graph, select: Op) -> AssumedSign:
    sign = find_sign(graph, select.output)
    assert sign is not None
    return AssumedSign(derived(select.output.name, ""), sign.x.name, float(sign.level[0]))


def _replace_zeros(graph: Graph, layer: Op) -> None:
    """Inserts ops that replace zeros in a layer's float weights by the magnitude of their output channel."""
    index = facts(layer).constants[0]
    stored, weights = layer.input(index), layer_weights(graph, layer)
    parts = None if weights is None else binary_weights(weights, assume_nonzero=True)
    if parts is None or isinstance(parts, str) or stored.type != "FLOAT32":
        return
    alpha = parts[1].reshape(-1, *[1] * (len(stored.dims) - 1))
    if layer.name == "BATCH_MATMUL" and not layer.options.adj_y:
        alpha = alpha.T
    is_zero = like(stored, derived(stored.name, "/is_zero"), type="BOOL")
    zero = constant(derived(stored.name, "/zero"), np.zeros((), np.float32))
    graph.insert(builtin_op("EQUAL", [stored, zero], is_zero), before=layer)
    nonzero = like(stored, derived(stored.name, "/nonzero"))
    magnitudes = constant(derived(stored.name, "/alpha"), alpha)
    graph.insert(builtin_op("SELECT_V2", [is_zero, magnitudes, stored], nonzero), before=layer)
    graph.set_input(layer, index, nonzero)
