"""Applies the option `assume_nonzero` to a source model, for verification, and counts the layers that are binary only
with it.
"""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from litebnn.analysis.reasons import TERNARY
from litebnn.analysis.signs import find_sign
from litebnn.analysis.transfers import SELECTS
from litebnn.analysis.weights import binary_weights, layer_weights
from litebnn.flatbuffer import read_model, write_model
from litebnn.graph import Graph, Op, begin_rewriting, builtin_op, constant, derived, facts, like
from litebnn.rules.build.notes import Layer, Notes, Request
from litebnn.rules.phases import BINARY_PHASES, run_phases
from litebnn.rules.thresholds.assume_nonzero import UNPADDED, assume_nonzero
from litebnn.verify.exact_zeros import Assumed, AssumedSign

# The phases after which it is known which layers are binary.
_UP_TO_BINARY = BINARY_PHASES[: BINARY_PHASES.index("binarize") + 1]


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


def layers_by_assumption(source: bytes, notes: Notes) -> int:
    """The number of layers that are binary with `assume_nonzero`, and float without it. The layers are counted in a
    second run of the rules, if what the first one noted mentions the option. Reasons that advise the option, although
    others would remain with it, are replaced by these.

    Args:
        source: a `.tflite` file.
        notes: the notes of its conversion, with the option or without it.
    """
    said = (*notes.warnings, *(reason for layer in notes.layers for reason in layer.reasons))
    if not any("assume_nonzero" in line for line in said):
        return 0
    model = read_model(source)
    begin_rewriting(model)
    others = Notes(model, Request(assume_nonzero=not notes.request.assume_nonzero))
    run_phases(model, _UP_TO_BINARY, others)
    if others.request.assume_nonzero:
        _replace_advice(notes, others)
    binary = [sum(layer.binary for layer in each.layers) for each in (notes, others)]
    return abs(binary[0] - binary[1])


def _replace_advice(notes: Notes, with_option: Notes) -> None:
    """Gives each float layer the reasons that remain with the option; if none remains, the option is the only one."""
    found = {layer.name: layer for layer in with_option.layers}
    for layer in (each for each in notes.layers if not each.binary and each.name in found):
        advice = [reason for reason in layer.reasons if "assume_nonzero" in reason]
        remaining = found[layer.name].reasons
        if found[layer.name].binary:
            layer.reasons = dict.fromkeys(advice or [TERNARY])
        elif advice and remaining:
            layer.reasons = dict(remaining)


def _described(graph: Graph, select: Op) -> AssumedSign:
    sign = find_sign(graph, select.output)
    assert sign is not None
    return AssumedSign(derived(select.output.name, "").removesuffix(UNPADDED), sign.x.name, float(sign.level[0]))


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
