"""Tests references.py: the checks of scales that are tensors, of omitted inputs, and of references to subgraphs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from litebnn.errors import ConversionError
from litebnn.graph import (
    Graph,
    Op,
    OpCode,
    Options,
    Tensor,
    constant,
)
from litebnn.safety import check_graph, check_subgraphs
from tests.support.float_models import FloatModel
from tests.support.quantized_models import in_blocks

X = Tensor("x", "FLOAT32", (1, 64))


def dense(change: Callable[[Tensor], object] = lambda weights: None, name: str = "FULLY_CONNECTED") -> Graph:
    """A dense layer [8, 64] quantized in blocks of 32, with a change to its weights."""
    weights = in_blocks(constant("w", np.ones((8, 64), np.float32)), "INT4", 32)
    change(weights)
    options = Options("FullyConnectedOptions", weights_format=0, fused_activation_function=0)
    result = Tensor("y", "FLOAT32", (1, 8))
    op = Op(OpCode(name), [X, weights], [result], options if name == "FULLY_CONNECTED" else Options())
    return Graph("main", [X, weights, result, *weights.companions], [X], [result], [op])


def option(key: str, value: Any) -> Callable[[Tensor], object]:
    return lambda weights: setattr(weights.details.options, key, value) if weights.details else None


def named(key: str, value: Any) -> Callable[[Tensor], object]:
    return lambda weights: weights.details.tensors.update({key: value}) if weights.details else None


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (option("block_size", 0), '"w": BlockwiseQuantization: block_size is 0, expected at least 1'),
        (option("block_size", 48), "rows of 64 are no blocks of 48"),
        (option("block_size", 16), r'scales "w_scales" is FLOAT16 \[8, 2\], expected a constant of 32 FLOAT16'),
        (option("block_shape", np.array([1, -1])), "block_shape is -1, expected at least 1"),
        (named("scales", X), r'scales "x" is FLOAT32 \[1, 64\]'),
        (named("scales", Tensor("s", "FLOAT16", (8, 2))), 'scales "s" is FLOAT16'),
        (named("scales", constant("s", np.ones((8, 2), np.float32))), 'scales "s" is FLOAT32'),
        (named("zero_points", constant("z", np.ones((8, 2), np.float32))), 'zero_points "z" is FLOAT32'),
        (named("zero_points", constant("z", np.ones((8, 1), np.int32))), 'zero_points "z" is INT32'),
        (lambda weights: setattr(weights, "type", "INT8"), r'"w": .*it is INT8 \[8, 64\], expected a constant matrix'),
        (lambda weights: setattr(weights, "shape", (8, 8, 8)), r"it is INT4 \[8, 8, 8\]"),
        (lambda weights: setattr(weights, "buffer", X.buffer), "expected a constant matrix"),
    ],
)
def test_what_quantizes_blocks_is_held_against_them(change: Callable[[Tensor], object], reason: str) -> None:
    with pytest.raises(ConversionError, match=reason):
        check_graph(dense(change))


def test_sound_blocks_pass() -> None:
    check_graph(dense())
    check_graph(dense(named("zero_points", constant("z", np.zeros((8, 2), np.int32)))))


@pytest.mark.parametrize("name", ["DEQUANTIZE", "ADD", "RELU", "TRANSPOSE", "GATHER_ND"])
def test_other_ops_do_not_read_blocks(name: str) -> None:
    graph = dense()
    [op] = graph.ops
    weights = op.input(1)
    graph.remove(op)
    graph.insert(Op(OpCode(name), [weights] * (2 if name == "ADD" else 1), op.outputs))
    with pytest.raises(ConversionError, match=rf"op 0 \({name}\): "):
        check_graph(graph)


def test_blocks_are_read_by_layers_of_floats_alone() -> None:
    graph = dense()
    graph.ops[0].outputs[0].type = "INT8"
    with pytest.raises(ConversionError, match="expected FLOAT32 inputs and outputs"):
        check_graph(graph)
    shuffled = dense()
    shuffled.ops[0].options.weights_format = 1
    with pytest.raises(ConversionError, match="which no runtime reads there"):
        check_graph(shuffled)


def test_an_output_is_not_quantized_by_blocks() -> None:
    graph = dense()
    graph.outputs.append(graph.ops[0].input(1))
    with pytest.raises(ConversionError, match='"w", an output of the graph, is sparse or quantized by other tensors'):
        check_graph(graph)


@pytest.mark.parametrize(("name", "place"), [("ADD_N", 1), ("IF", 1), ("CONCATENATION", 0)])
def test_an_operand_that_is_left_out(name: str, place: int) -> None:
    inputs: list[Tensor | None] = [X, X]
    inputs[place] = None
    result = Tensor("y", "FLOAT32", (1, 64))
    options = Options("ConcatenationOptions", axis=0) if name == "CONCATENATION" else Options()
    graph = Graph("main", [X, result], [X], [result], [Op(OpCode(name), inputs, [result], options)])
    with pytest.raises(ConversionError, match=rf"op 0 \({name}\): "):
        check_graph(graph)


def test_a_depthwise_convolution_has_a_place_for_its_bias() -> None:
    model = FloatModel()
    model.depthwise_conv(model.input(1, 4, 4, 8), np.ones((1, 1, 1, 8)), np.zeros(8))
    check_graph(model.graph)
    model.graph.ops[0].inputs[2] = None
    check_graph(model.graph)
    model.graph.ops[0].inputs.pop()
    with pytest.raises(ConversionError, match="no place for a bias"):
        check_graph(model.graph)


def called(types: tuple[str, ...], results: tuple[str, ...], is_computed: bool = True) -> Graph:
    inputs = [Tensor(f"in{i}", type, (1,)) for i, type in enumerate(types)]
    outputs = [Tensor(f"out{i}", type, (1,)) for i, type in enumerate(results)]
    ops = [Op(OpCode("CUSTOM", "Mine"), [*inputs], outputs)] if is_computed else []
    return Graph("called", [*inputs, *outputs], inputs, outputs, ops)


def calls(name: str, table: str, *inner: Graph, types: tuple[str, ...] = ("FLOAT32",), **options: Any) -> list[Graph]:
    """A model whose first graph has an op that runs the other graphs."""
    inputs = [Tensor(f"x{i}", type, (1,)) for i, type in enumerate(types)]
    result = Tensor("y", "FLOAT32", (1,))
    op = Op(OpCode(name), list(inputs), [result], Options(table, **options))
    return [Graph("main", [*inputs, result], inputs, [result], [op]), *inner]


SAME = called(("FLOAT32",), ("FLOAT32",))
CASE = ("INT32", "FLOAT32")
CONDITION = called(("FLOAT32",), ("BOOL",))


@pytest.mark.parametrize(
    ("graphs", "reason"),
    [
        (calls("IF", "IfOptions", SAME, then_subgraph_index=2, else_subgraph_index=1), "then_subgraph_index is 2, exp"),
        (calls("CALL", "CallOptions", subgraph=1), r"op 0 \(CALL\): subgraph is 1, expected 0 to 0"),
        (
            calls("STABLEHLO_CUSTOM_CALL", "StablehloCustomCallOptions", called_computations=np.array([0, 7])),
            "called_computations is 7",
        ),
        (
            calls(
                "STABLEHLO_CASE",
                "StablehloCaseOptions",
                SAME,
                types=CASE,
                branch_subgraph_indices=np.array([1, -1]),
            ),
            "branch_subgraph_indices is -1",
        ),
        (
            calls("WHILE", "WhileOptions", SAME, cond_subgraph_index=1, body_subgraph_index=1),
            "cond_subgraph_index is 1, a subgraph with outputs FLOAT32, expected BOOL",
        ),
        (
            calls("WHILE", "WhileOptions", CONDITION, cond_subgraph_index=1, body_subgraph_index=1),
            "body_subgraph_index is 1, a subgraph with outputs BOOL, expected FLOAT32",
        ),
        (
            calls("IF", "IfOptions", SAME, types=("BOOL", "INT32"), then_subgraph_index=1, else_subgraph_index=1),
            "a subgraph with inputs FLOAT32, expected INT32",
        ),
        (
            calls("CALL", "CallOptions", called(("FLOAT32",), ("FLOAT32",), is_computed=False), subgraph=1),
            'subgraph is 1, a subgraph whose output "out0" nothing computes',
        ),
        (
            calls(
                "STABLEHLO_CASE", "StablehloCaseOptions", SAME, SAME, SAME, types=CASE, branch_subgraph_indices=[1, 2]
            ),
            "2 branches, expected all 3 subgraphs",
        ),
        (
            calls("STABLEHLO_COMPOSITE", "StableHLOCompositeOptions", decomposition_subgraph_index=0),
            "subgraph 0 runs itself",
        ),
    ],
)
def test_subgraphs_that_cannot_be_run(graphs: list[Graph], reason: str) -> None:
    with pytest.raises(ConversionError, match=reason):
        check_subgraphs(graphs)


def test_a_composite_leaves_out_what_its_subgraph_does_not_read() -> None:
    unread = called(("FLOAT32",), ("FLOAT32",))
    reader = unread.ops[0]
    unread.remove(reader)
    unread.insert(Op(OpCode("CUSTOM", "Mine"), [], unread.outputs))
    for inner, reason in ((SAME, 'reads its input "in0", which is left out'), (unread, "")):
        graphs = calls("STABLEHLO_COMPOSITE", "StableHLOCompositeOptions", inner, decomposition_subgraph_index=1)
        graphs[0].set_input(graphs[0].ops[0], 0, None)
        if reason:
            with pytest.raises(ConversionError, match=reason):
                check_subgraphs(graphs)
        else:
            check_subgraphs(graphs)


def test_subgraphs_that_run_each_other() -> None:
    first, second = (calls("CALL", "CallOptions", subgraph=i)[0] for i in (2, 1))
    with pytest.raises(ConversionError, match="runs itself"):
        check_subgraphs([*calls("CALL", "CallOptions", subgraph=1), first, second])


def test_subgraphs_that_fit_pass() -> None:
    check_subgraphs(calls("WHILE", "WhileOptions", CONDITION, SAME, cond_subgraph_index=1, body_subgraph_index=2))
    check_subgraphs(
        calls("STABLEHLO_CASE", "StablehloCaseOptions", SAME, SAME, types=CASE, branch_subgraph_indices=[2, 1])
    )
    # A subgraph may run twice, and may be run by another subgraph.
    inner = calls("CALL", "CallOptions", subgraph=2)[0]
    check_subgraphs(
        [
            *calls("IF", "IfOptions", types=("BOOL", "FLOAT32"), then_subgraph_index=1, else_subgraph_index=2),
            inner,
            SAME,
        ]
    )
