"""Tests networks with gated binary layers, like squeeze-and-excite blocks. Fusing gates, PRELUs and additions must not
change bits.

The fused ops may run inside the convolution, or in one pass after it.
"""

from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.ops.test_dense_graphs import SIZE, ImageGraph, assert_fused_as_op_by_op
from tests.support import lce_models

pytestmark = pytest.mark.usefixtures("library")
IMAGES = SIZE[0]
BLOCK = st.fixed_dictionaries(
    {
        # The shape of the gate (the factor per channel), without its axis of channels; None for a layer without a gate.
        "gate": st.sampled_from([(IMAGES, 1, 1), (1, 1, 1), (1,), (IMAGES, 1, 1), None]),
        "leaks": st.booleans(),
        "adds": st.sampled_from(["input", "input", "convolution", "nothing"]),
        "relus": st.sampled_from([(0, 0), (0, 0), (1, 0), (0, 1)]),
        "swaps": st.booleans(),
        "filter_size": st.sampled_from([(3, 3), (1, 1), (2, 3)]),
        "pad_values": st.sampled_from([0, 1]),
        # True if the graph also has the output of the convolution as an output.
        "is_output": st.sampled_from([False, False, False, True]),
    }
)


@given(
    channels=st.sampled_from([64, 128, 64, 40, 192]),
    blocks=st.lists(BLOCK, min_size=1, max_size=3),
    num_threads=st.integers(1, 3),
    seed=st.integers(0, 2**31),
)
@settings(max_examples=80, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_what_a_convolution_gates_has_the_bits_of_what_runs_op_by_op(
    channels: int, blocks: list[dict[str, Any]], num_threads: int, seed: int
) -> None:
    graph = ImageGraph(seed)
    image = graph.image(channels, computed=False)
    inputs, given = [image], [graph.random.standard_normal((*SIZE, channels)).astype(np.float32)]
    outputs = []

    def apply(op: str, sources: list[int], activation: int) -> int:
        result = graph.image(channels)
        options = getattr(lce_models.schema, f"{op.title()}OptionsT")()
        options.fusedActivationFunction = activation
        graph.builtin(op, sources, [result], options)
        return result

    def gate_of(shape: tuple[int, ...]) -> int:
        # The runtime's own ops compute the feature image and the gate, so they are not part of the delegate's nodes.
        feature, gate = graph.tensor(shape, "float32"), graph.tensor(shape, "float32")
        inputs.append(feature)
        given.append(graph.random.standard_normal(shape).astype(np.float32))
        graph.builtin("LOGISTIC", [feature], [gate])
        return gate

    for block in blocks:
        words, order = graph.pack(image), -1 if block["swaps"] else 1
        layers = [
            graph.convolve(words, channels, block["filter_size"], block["pad_values"])
            for _ in range(2 if block["adds"] == "convolution" else 1)
        ]
        outputs += layers[:1] * block["is_output"]
        result, addend = layers[0], layers[1] if len(layers) > 1 else image
        if block["gate"] is not None:
            result = apply("MUL", [result, gate_of((*block["gate"], channels))][::order], block["relus"][0])
        if block["leaks"]:
            source, result = result, graph.image(channels)
            graph.builtin("PRELU", [source, graph.channel_values(channels)], [result])
        if block["adds"] != "nothing":
            result = apply("ADD", [result, addend][::order], block["relus"][1])
        image = result
    outputs += [image, graph.convolve(graph.pack(image), channels)]
    assert_fused_as_op_by_op(graph, inputs, outputs, given, num_threads)


@given(
    channels=st.sampled_from([64, 128, 40, 7]),
    norms=st.lists(st.sampled_from([["MUL", "ADD"], ["MUL", "ADD"], ["MUL"], ["ADD"], []]), min_size=1, max_size=3),
    filter_size=st.sampled_from([SIZE[1:], SIZE[1:], SIZE[1:], (3, 2), (5, 4)]),
    num_threads=st.integers(1, 3),
    seed=st.integers(0, 2**31),
)
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_batch_norm_that_is_packed_and_averaged_has_the_bits_of_what_runs_op_by_op(
    channels: int, norms: list[list[str]], filter_size: tuple[int, int], num_threads: int, seed: int
) -> None:
    graph = ImageGraph(seed)
    source = image = graph.image(channels, computed=False)
    averages = []
    for norm in norms:
        normed, shortcut = graph.apply(norm, image), image
        convolved = graph.convolve(graph.pack(normed), channels)
        average, gate = (graph.tensor((IMAGES, 1, 1, channels), "float32") for _ in range(2))
        pool = lce_models.schema.Pool2DOptionsT()
        pool.padding, pool.strideH, pool.strideW = 1, *SIZE[1:]
        pool.filterHeight, pool.filterWidth = filter_size
        graph.builtin("AVERAGE_POOL_2D", [normed], [average], pool)
        graph.builtin("LOGISTIC", [average], [gate])
        gated, image = graph.image(channels), graph.image(channels)
        graph.builtin("MUL", [convolved, gate], [gated], lce_models.schema.MulOptionsT())
        graph.builtin("ADD", [gated, shortcut], [image], lce_models.schema.AddOptionsT())
        averages.append(average)
    given = graph.random.standard_normal((*SIZE, channels)).astype(np.float32)
    assert_fused_as_op_by_op(graph, [source], [image, *averages], [given], num_threads)
