import numpy as np
import pytest

from litebnn.flatbuffer import write_model
from litebnn.flatbuffer.accepted import SHAPE_OPERANDS, find_computed_shape
from litebnn.flatbuffer.schema import OPERATOR_NAMES
from litebnn.graph import Graph, Model, Op, OpCode, Tensor, constant

SHAPE = constant("shape", np.array([3], np.int32))
FED = Tensor("fed", "INT32", (1,))
X = Tensor("x", "FLOAT32", (1, 3))


def model(name: str, operands: list[Tensor]) -> bytes:
    result = Tensor("result", "FLOAT32", (3,))
    code = OpCode(name)
    inputs = [tensor for tensor in operands if tensor is not SHAPE]
    graph = Graph("main", [*dict.fromkeys(operands), result], inputs, [result], [Op(code, operands, [result])])
    return write_model(Model([graph], [], [code], [], None, None, 3, None))


@pytest.mark.parametrize(
    ("name", "operands", "found"),
    [
        ("RESHAPE", [X, SHAPE], None),
        ("RESHAPE", [X], None),
        ("RESHAPE", [X, FED], "RESHAPE result"),
        ("FILL", [SHAPE, X], None),
        ("FILL", [FED, X], "FILL result"),
        ("STRIDED_SLICE", [X, SHAPE, FED, SHAPE], "STRIDED_SLICE result"),
        ("WHERE", [X], "WHERE result"),
        ("ADD", [X, FED], None),
    ],
)
def test_shapes_come_out_of_certain_operands(name: str, operands: list[Tensor], found: str | None) -> None:
    assert find_computed_shape(model(name, operands)) == found


DECIDING = {
    (0,): "CONV_3D_TRANSPOSE FILL RANDOM_STANDARD_NORMAL RANDOM_UNIFORM SPLIT TRANSPOSE_CONV UNIQUE WHERE",
    (1,): """ARG_MAX ARG_MIN BROADCAST_TO EXPAND_DIMS MULTINOMIAL ONE_HOT MIRROR_PAD PAD PADV2 RESHAPE TILE TOPK_V2 MEAN
        TRANSPOSE RESIZE_BILINEAR RESIZE_NEAREST_NEIGHBOR SEGMENT_SUM SPARSE_TO_DENSE SUM REDUCE_ALL REDUCE_ANY
        REDUCE_MAX REDUCE_MIN REDUCE_PROD""",
    (2,): """NON_MAX_SUPPRESSION_V4 NON_MAX_SUPPRESSION_V5 SCATTER_ND UNSORTED_SEGMENT_MAX UNSORTED_SEGMENT_MIN
        UNSORTED_SEGMENT_PROD UNSORTED_SEGMENT_SUM""",
    (1, 2): "BATCH_TO_SPACE_ND SLICE SPACE_TO_BATCH_ND SPLIT_V",
    (0, 1, 2): "RANGE",
    (1, 2, 3): "STRIDED_SLICE",
}


def test_each_operand_that_decides_about_a_shape_is_known() -> None:
    assert {name: places for places, names in DECIDING.items() for name in names.split()} == SHAPE_OPERANDS


def test_the_ops_are_the_schemas() -> None:
    assert set(SHAPE_OPERANDS) <= set(OPERATOR_NAMES.values())
