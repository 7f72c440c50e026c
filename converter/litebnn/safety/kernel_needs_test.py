"""Tests that `convert` and `check` refuse operands with which a kernel would crash the runtime's process."""

from __future__ import annotations

import re
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
from litebnn.safety import check_graph
from litebnn.safety.kernel_needs import kernel_mistakes


def one(name: str, operands: list[Tensor | None], *results: Tensor, table: str = "", **options: Any) -> Graph:
    """A graph of one op, whose inputs are constants or inputs of the graph."""
    given = [each for each in operands if each is not None and not each.is_constant and not each.is_variable]
    graph = Graph("main", [], list(dict.fromkeys(given)), [*results], [])
    graph.insert(Op(OpCode(name), operands, list(results), Options(table, **options)))
    return graph


def of(*shape: int, type: str = "FLOAT32", name: str = "x", is_variable: bool = False) -> Tensor:
    return Tensor(name, type, shape, is_variable=is_variable)


def copying(name: str, operands: int = 0) -> Graph:
    """A graph of an op with a FLOAT32 output and a FLOAT64 operand. Before the FLOAT64 operand there are `operands`
    other operands.
    """
    others = [constant(f"operand{i}", np.int32(0)) for i in range(operands)]
    return one(name, [*others, of(4, 8, type="FLOAT64", name="wide")], of(4, 8, name="y"))


def recurrent(rank: int = 3, state: str = "FLOAT32", result: str = "FLOAT32") -> Graph:
    data, kept = of(*range(2, 2 + rank)), of(2, 4, type=state, name="state", is_variable=True)
    return one("UNIDIRECTIONAL_SEQUENCE_LSTM", [data, None, kept], of(2, 3, 4, type=result, name="y"))


def dense(data: tuple[int, ...], weights: tuple[int, int], result: tuple[int, ...]) -> Graph:
    operands: list[Tensor | None] = [of(*data), of(*weights, name="w"), None]
    return one("FULLY_CONNECTED", operands, of(*result, name="y"), table="FullyConnectedOptions", weights_format=0)


def gated(*left_out: int, count: int = 24) -> Graph:
    """A graph of an LSTM without the inputs at these indices."""
    operands = [None if place in left_out else of(2, 4, name=f"x{place}") for place in range(count)]
    return one("LSTM", [*operands], of(2, 4, name="y"))


def convolution(bias: int, name: str = "CONV_2D") -> Graph:
    """A graph of a layer with 6 output channels and a bias of another size."""
    ones = constant("ones", np.ones(bias, np.float32))
    operands = [of(1, 4, 4, 6), of(*((1, 1, 1, 6) if "DEPTH" in name else (6, 1, 1, 6)), name="w"), ones]
    table = {"CONV_2D": "Conv2DOptions", "DEPTHWISE_CONV_2D": "DepthwiseConv2DOptions"}[name]
    return one(name, [*operands], of(1, 4, 4, 6, name="y"), table=table, padding=0)


def shape_operand(*sizes: int) -> Tensor:
    return constant("sizes", np.array(sizes, np.int32))


def sparse_dense() -> Graph:
    graph = dense((2, 8), (4, 80), (2, 4))
    weights = graph.ops[0].input(1)
    weights.buffer, weights.is_sparse = constant("values", np.ones(4, np.float32)).buffer, True
    graph.inputs.remove(weights)
    return graph


def writes_a_variable() -> Graph:
    return one("NEG", [of(2)], of(2, name="y", is_variable=True))


def strings_of_nothing() -> Graph:
    graph = one("NEG", [of(2)], of(2, name="y"))
    graph.outputs.append(of(1, type="STRING", name="words"))
    return graph


def variable_twice() -> Graph:
    graph = one("READ_VARIABLE", [of(1, type="RESOURCE", name="handle")], value := of(2, name="value"))
    graph.insert(Op(OpCode("MUL"), [value, value], [of(2, name="y")], Options("MulOptions")))
    return graph


def case(*branches: int) -> Graph:
    operands: list[Tensor | None] = [of(1, type="INT32", name="which"), of(2)]
    places = np.array(branches, np.int32)
    return one(
        "STABLEHLO_CASE", operands, of(2, name="y"), table="StablehloCaseOptions", branch_subgraph_indices=places
    )


@pytest.mark.parametrize(
    ("graph", "reason"),
    [
        (copying("RESHAPE"), '"wide" is FLOAT64 and "y" FLOAT32, expected the same'),
        (copying("TRANSPOSE"), "expected the same"),
        (copying("SPLIT", 1), "expected the same"),
        (copying("CONCATENATION", 1), "expected the same"),
        (copying("SELECT_V2", 2), "expected the same"),
        (copying("CUMSUM"), "expected the same"),
        (copying("SUM"), "expected the same"),
        (copying("STABLEHLO_SCATTER", 2), "expected the same"),
        (one("BATCH_MATMUL", [of(2, 2), of(2, 2, name="w")], of(2, 2, type="UINT8", name="y")), "expected FLOAT32"),
        (one("EMBEDDING_LOOKUP", [of(2, type="INT32"), of(4, 8)], of(2, 8, type="INT8", name="y")), "expected FLOAT32"),
        (recurrent(state="RESOURCE"), '"state" is a variable of RESOURCE, expected numbers'),
        (recurrent(state="UINT8"), '"state" is UINT8, expected FLOAT32 as "x" is'),
        (recurrent(result="UINT8"), '"y" is UINT8, expected FLOAT32'),
        (recurrent(rank=4), '"x" has 4 dimensions, expected 3 at most'),
        (writes_a_variable(), r'it writes "y", a variable'),
        (one("RESIZE_BILINEAR", [of(1, 4, 0, 2), constant("s", np.array([8, 8], np.int32))], of(1, 8, 8, 2)), "no ele"),
        (one("DENSIFY", [constant("w", np.ones((4, 8), np.float32))], of(4, 1, name="y")), "has shape"),
        (dense((55, 8), (4, 8), (2, 4)), r"shapes \[55, 8\], \[4, 8\] and \[2, 4\]"),
        (one("MATRIX_SET_DIAG", [of(2, 3, 3), of(0, 3, name="d")], of(2, 3, 3, name="y")), r"expected \[2, 3\]"),
        (one("STABLEHLO_SHIFT_LEFT", [of(4), of(0, name="n")], of(4, name="y")), "expected the same"),
        (
            one(
                "REVERSE_SEQUENCE",
                [of(2, 3, 4), constant("n", np.array([1, 4], np.int32))],
                of(2, 3, 4, name="y"),
                table="ReverseSequenceOptions",
                seq_dim=1,
            ),
            "lengths from 1 to 4, expected 0 to 3",
        ),
        (copying("ABS"), "expected the same"),
        (copying("ADD"), "expected the same"),
        (copying("STABLEHLO_MINIMUM"), "expected the same"),
        (copying("SEGMENT_SUM"), "expected the same"),
        (one("SOFTMAX", [of(2)], of(2, type="INT2", name="y")), '"y" is INT2, expected FLOAT32 as "x" is'),
        (one("DEQUANTIZE", [of(2, type="INT8")], of(2, type="UINT16", name="y")), '"y" is UINT16, expected FLOAT32'),
        (one("LESS", [of(2), of(2)], of(2, name="y")), '"y" is FLOAT32, expected BOOL'),
        (one("ARG_MAX", [of(2)], of(1, name="y")), '"y" is FLOAT32, expected INT32 or INT64'),
        (one("LOG_SOFTMAX", [of(2, 0)], of(2, 0, name="y")), '"x" has no elements'),
        (one("SOFTMAX", [of(0)], of(2, 4, name="y")), '"x" has no elements'),
        (one("SKIP_GRAM", [of(0, type="STRING")], of(1, type="STRING", name="y")), '"x" has no elements'),
        (convolution(5), r'"ones" has shape \[5\], expected \[6\]'),
        (convolution(7, "DEPTHWISE_CONV_2D"), r'"ones" has shape \[7\], expected \[6\]'),
        (one("BROADCAST_ARGS", [shape_operand(2, 3), shape_operand(2)], of(2, type="INT32")), "do not fit each other"),
        (
            one("REDUCE_WINDOW", [of(4), of(), shape_operand(2), shape_operand(0), shape_operand(1)], of(3, name="y")),
            '"sizes" holds 0, expected 1 at least',
        ),
        (gated(12), "input 12 of the input gate is left out"),
        (gated(1, 5), "input 1 of the input gate is left out"),
        (sparse_dense(), r"shapes \[2, 8\], \[4, 80\] and \[2, 4\]"),
        (case(0), "1 branches, expected 2 at least"),
        (one("EMBEDDING_LOOKUP_SPARSE", [of(3)] * 5, of(3, name="y")), "its kernel frees memory twice"),
        (one("RANDOM_UNIFORM", [], of(2, name="y")), "0 inputs and 1 outputs, expected 1 and 1"),
        (one("LSTM", [of(2, 3, type="INT4")], of(2, 3, name="y")), '"x" is INT4, expected FLOAT32'),
        (one("READ_VARIABLE", [of(1, type="RESOURCE", name="handle")]), "1 inputs and 0 outputs, expected 1 and 1"),
        (one("ASSIGN_VARIABLE", [of(1, type="RESOURCE")]), "1 inputs and 0 outputs, expected 2 and 0"),
    ],
)
def test_what_a_kernel_does_not_survive_is_a_mistake(graph: Graph, reason: str) -> None:
    [op] = graph.ops
    assert any(re.search(reason, mistake) for mistake in kernel_mistakes(op))
    with pytest.raises(ConversionError, match=rf"op 0 \({op.name}\): "):
        check_graph(graph)


@pytest.mark.parametrize(
    ("graph", "reason"),
    [
        (strings_of_nothing(), '"words", an output of the graph, is of strings that nothing computes'),
        (variable_twice(), r'op 1 \(MUL\) reads "value", the value of a variable, twice'),
    ],
)
def test_what_a_runtime_does_not_survive_of_a_graph(graph: Graph, reason: str) -> None:
    with pytest.raises(ConversionError, match=reason):
        check_graph(graph)


@pytest.mark.parametrize(
    "graph",
    [
        recurrent(),
        recurrent(rank=2),
        dense((2, 8), (4, 8), (2, 4)),
        dense((2, 2, 4), (4, 8), (2, 4)),
        one("DENSIFY", [constant("w", np.ones((4, 8), np.float32))], of(4, 8, name="y")),
        one("EMBEDDING_LOOKUP", [of(2, type="INT32"), of(4, 8, type="INT8")], of(2, 8, name="y")),
        one("MATRIX_SET_DIAG", [of(2, 3, 4), of(2, 3, name="d")], of(2, 3, 4, name="y")),
        one("STABLEHLO_SHIFT_LEFT", [of(4), of(4, name="n")], of(4, name="y")),
        case(0, 0),
        convolution(6),
        convolution(6, "DEPTHWISE_CONV_2D"),
        one("BROADCAST_ARGS", [shape_operand(2, 3), shape_operand(3)], of(2, type="INT32", name="y")),
        one("BROADCAST_ARGS", [shape_operand(4, 2, 1), shape_operand(3)], of(3, type="INT32", name="y")),
        one("REDUCE_WINDOW", [of(4), of(), shape_operand(2), shape_operand(1), shape_operand(1)], of(3, name="y")),
        one("SOFTMAX", [of(2, type="INT8")], of(2, type="INT16", name="y")),
        one("READ_VARIABLE", [of(1, type="RESOURCE", name="handle")], of(2, name="y")),
        one("ASSIGN_VARIABLE", [of(1, type="RESOURCE", name="handle"), of(2)]),
    ],
)
def test_what_kernels_compute_passes(graph: Graph) -> None:
    check_graph(graph)
