import numpy as np
import pytest

from litebnn.flatbuffer import write_model
from litebnn.flatbuffer.computed_shapes import SHAPE_OPERANDS, find_computed_shape
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


def test_the_ops_are_the_schemas() -> None:
    assert set(SHAPE_OPERANDS) <= set(OPERATOR_NAMES.values())
