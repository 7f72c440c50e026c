"""Compares the table of facts with a second table. The second table is sorted by fact, and was made from TFLite's
operator definitions and int8 specification.
"""

from typing import Any

import pytest

from litebnn.contract import Activation
from litebnn.graph.graph import Op, OpCode
from litebnn.graph.makers import builtin_op
from litebnn.graph.op_facts import FACTS, MANY, Facts, Int8, facts

INPUTS = {
    (1, 1): """NEG ABS SIGN CAST SQUARE EXP CEIL FLOOR ROUND RSQRT SQRT LOGICAL_NOT RELU RELU6 RELU_N1_TO_1 RELU_0_TO_1
        LEAKY_RELU ELU TANH LOGISTIC SOFTMAX HARD_SWISH MAX_POOL_2D AVERAGE_POOL_2D SQUEEZE DEPTH_TO_SPACE
        SPACE_TO_DEPTH QUANTIZE DEQUANTIZE""",
    (1, 2): "RESHAPE",
    (2, 2): """BATCH_MATMUL ADD SUB MUL DIV FLOOR_DIV MAXIMUM MINIMUM EQUAL NOT_EQUAL GREATER_EQUAL GREATER LESS_EQUAL
        LESS LOGICAL_AND LOGICAL_OR PRELU POW MEAN REDUCE_MAX REDUCE_MIN SUM EXPAND_DIMS BROADCAST_TO FILL TILE
        TRANSPOSE PAD MIRROR_PAD GATHER GATHER_ND REVERSE_V2 SPLIT RESIZE_BILINEAR RESIZE_NEAREST_NEIGHBOR""",
    (2, 3): "CONV_2D DEPTHWISE_CONV_2D FULLY_CONNECTED CONV_3D",
    (3, 3): "SELECT SELECT_V2 PADV2 SLICE SPACE_TO_BATCH_ND BATCH_TO_SPACE_ND",
    (3, 4): "TRANSPOSE_CONV",
    (4, 4): "STRIDED_SLICE",
    (1, MANY): "PACK CONCATENATION",
}
# Lists of ops, by the rank (number of dimensions) of their inputs and of their output; 0 means any rank.
RANKS = {
    ((4, 4), 4): "CONV_2D DEPTHWISE_CONV_2D",
    ((5, 5), 5): "CONV_3D",
    ((1, 4, 4), 4): "TRANSPOSE_CONV",
    ((4,), 4): "MAX_POOL_2D AVERAGE_POOL_2D",
    ((0, 2), 0): "FULLY_CONNECTED PAD PADV2 MIRROR_PAD",
    ((0, 1, 2), 0): "SPACE_TO_BATCH_ND BATCH_TO_SPACE_ND",
}
VERSIONS = {
    1: "RELU_N1_TO_1 HARD_SWISH RESHAPE SQUEEZE EXPAND_DIMS DEPTH_TO_SPACE",
    2: """ADD MUL RELU RELU6 LEAKY_RELU TANH LOGISTIC SOFTMAX MAX_POOL_2D AVERAGE_POOL_2D MEAN TRANSPOSE STRIDED_SLICE
        SPACE_TO_DEPTH PAD CONCATENATION RESIZE_BILINEAR RESIZE_NEAREST_NEIGHBOR""",
    3: "CONV_2D DEPTHWISE_CONV_2D SUB",
    4: "FULLY_CONNECTED TRANSPOSE_CONV",
}
RESULTS = {(1 / 128, 0): "TANH", (1 / 256, -128): "LOGISTIC SOFTMAX"}
WEIGHTS_AXES = {0: "CONV_2D TRANSPOSE_CONV", 3: "DEPTHWISE_CONV_2D", -1: "FULLY_CONNECTED"}
SAME_PARAMETERS = """RESHAPE SQUEEZE EXPAND_DIMS MAX_POOL_2D AVERAGE_POOL_2D TRANSPOSE STRIDED_SLICE DEPTH_TO_SPACE
    SPACE_TO_DEPTH PAD CONCATENATION RESIZE_BILINEAR RESIZE_NEAREST_NEIGHBOR"""
CONSTANTS = {
    (1, 2): "CONV_2D DEPTHWISE_CONV_2D FULLY_CONNECTED CONV_3D",
    (1,): "BATCH_MATMUL",
    (1, 3): "TRANSPOSE_CONV",
}
CLAMPS = {Activation.RELU: "RELU", Activation.RELU6: "RELU6", Activation.RELU_N1_TO_1: "RELU_N1_TO_1"}
POOL = {"stride_h": 1, "stride_w": 1, "filter_height": 1, "filter_width": 1}
CONV = {"stride_h": 1, "stride_w": 1, "dilation_h_factor": 1, "dilation_w_factor": 1}
DEFAULTS: list[tuple[dict[str, Any], str]] = [
    (POOL, "MAX_POOL_2D AVERAGE_POOL_2D"),
    (CONV, "CONV_2D DEPTHWISE_CONV_2D"),
    ({"fused_activation_function": Activation.NONE, "weights_format": 0}, "FULLY_CONNECTED"),
    ({"adj_x": False, "adj_y": False}, "BATCH_MATMUL"),
    ({"keep_dims": False}, "MEAN REDUCE_MAX REDUCE_MIN SUM"),
]
FLAGS = {
    "needs_options": """CONV_2D DEPTHWISE_CONV_2D FULLY_CONNECTED BATCH_MATMUL TRANSPOSE_CONV MAX_POOL_2D MEAN
        REDUCE_MAX REDUCE_MIN SUM CONCATENATION""",
    "keeps_signs": "RELU_N1_TO_1 ELU TANH",
    "moves": "RESHAPE SQUEEZE EXPAND_DIMS MAX_POOL_2D TRANSPOSE STRIDED_SLICE DEPTH_TO_SPACE SPACE_TO_DEPTH",
    "reshapes": "RESHAPE SQUEEZE EXPAND_DIMS",
    "on_signs": """CONV_2D FULLY_CONNECTED RESHAPE SQUEEZE EXPAND_DIMS MAX_POOL_2D PAD PADV2 SPACE_TO_BATCH_ND""",
}
PURE = {name: known for name, known in FACTS.items() if not known.effects}


def by_name(table: dict[Any, str]) -> dict[str, Any]:
    return {name: fact for fact, names in table.items() for name in names.split()}


def test_numbers_of_inputs_and_outputs() -> None:
    assert {name: (known.least, known.most) for name, known in PURE.items()} == by_name(INPUTS)
    assert {name: known.most_outputs for name, known in PURE.items() if known.most_outputs != 1} == {"SPLIT": MANY}


def test_ranks() -> None:
    found = {name: (known.ranks, known.rank) for name, known in FACTS.items() if known.ranks or known.rank}
    assert found == by_name(RANKS)


def test_indices_sizes_and_axes_are_integers() -> None:
    for name, known in PURE.items():
        if known.kinds[:1] == ("",):
            assert set(known.kinds[1:]) == {"iu"}, name


@pytest.mark.parametrize(
    ("of_int8", "table"),
    [
        ("version", VERSIONS),
        ("result", RESULTS),
        ("weights_axis", WEIGHTS_AXES),
        ("same_parameters", {True: SAME_PARAMETERS}),
    ],
)
def test_int8(of_int8: str, table: dict[Any, str]) -> None:
    found = {name: getattr(known.int8, of_int8) for name, known in FACTS.items() if known.int8 is not None}
    default = getattr(Int8(0), of_int8)
    assert {name: fact for name, fact in found.items() if fact != default or name in by_name(table)} == by_name(table)


def test_weights_data_and_clamps() -> None:
    assert {name: known.constants for name, known in FACTS.items() if known.constants} == by_name(CONSTANTS)
    assert {name for name, known in FACTS.items() if known.layer} == set(by_name(CONSTANTS))
    assert {name: known.data for name, known in FACTS.items() if known.data} == {"TRANSPOSE_CONV": 2}
    assert {name: known.limits for name, known in FACTS.items() if known.limits} == {"RELU_0_TO_1": (0, 1)}
    assert {name: known.clamp for name, known in FACTS.items() if known.clamp is not None} == by_name(CLAMPS)


@pytest.mark.parametrize("flag", FLAGS)
def test_flags(flag: str) -> None:
    found = {name for name, known in FACTS.items() if getattr(known, flag)}
    assert found == set(FLAGS[flag].split())


def test_new_ops_have_the_defaults() -> None:
    found = {name: dict(known.defaults) for name, known in FACTS.items() if known.defaults}
    assert found == {name: defaults for defaults, names in DEFAULTS for name in names.split()}
    pool = builtin_op("MAX_POOL_2D", [], None, stride_h=2)  # type: ignore[arg-type]
    assert vars(pool.options) == {"table": "Pool2DOptions", **POOL, "stride_h": 2}
    assert pool.code.version == 1


def test_what_is_not_in_the_table_may_do_anything() -> None:
    assert facts(Op(OpCode("FFT"), [], [])) == Facts()
    assert {name for name, known in FACTS.items() if known.effects} >= {"CUSTOM", "WHILE", "VAR_HANDLE"}
    assert all(FACTS[name] == Facts(effects=True) for name in ("CUSTOM", "WHILE", "VAR_HANDLE"))
    unknown = Facts()
    assert (unknown.least, unknown.most, unknown.most_outputs, unknown.rank, unknown.data) == (0, 0, 1, 0, 0)
    flags = (
        unknown.needs_options,
        unknown.keeps_signs,
        unknown.moves,
        unknown.reshapes,
        unknown.on_signs,
        unknown.effects,
    )
    assert not any(flags)
