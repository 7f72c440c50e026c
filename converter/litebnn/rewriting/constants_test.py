import numpy as np
import pytest

from litebnn.graph import Array, Tensor
from litebnn.rewriting.constants import evaluate, is_computed_from_constants
from tests.support.float_models import FloatModel

VALUES = np.arange(6, dtype=np.float32).reshape(2, 3)


def evaluated(model: FloatModel, tensor: Tensor) -> Array | None:
    assert is_computed_from_constants(model.graph, tensor)
    return evaluate(model.graph, tensor)


@pytest.mark.parametrize(
    ("name", "operand", "shape", "options", "expected"),
    [
        ("TRANSPOSE", [1, 0], (3, 2), {}, VALUES.T),
        ("RESHAPE", [3, -1], (3, 2), {}, VALUES.reshape(3, 2)),
        ("MEAN", [-1], (2,), {"keep_dims": False}, VALUES.mean(axis=1)),
        ("MEAN", [0, 1], (1, 1), {"keep_dims": True}, VALUES.mean(keepdims=True)),
    ],
)
def test_ops_with_an_index_operand(
    name: str, operand: list[int], shape: tuple[int, ...], options: dict[str, bool], expected: Array
) -> None:
    model = FloatModel()
    result = model.op(name, [model.const(VALUES), model.const(operand, np.int32)], shape, **options)
    np.testing.assert_array_equal(evaluated(model, result), expected)


@pytest.mark.parametrize(
    ("name", "operand", "shape"),
    [("TRANSPOSE", [1, 1], (3, 2)), ("TRANSPOSE", [0], (2, 3)), ("RESHAPE", [4, 2], (4, 2)), ("MEAN", [2], (2,))],
)
def test_an_operand_that_does_not_fit_gives_nothing(name: str, operand: list[int], shape: tuple[int, ...]) -> None:
    model = FloatModel()
    result = model.op(name, [model.const(VALUES), model.const(operand, np.int32)], shape, keep_dims=False)
    assert evaluated(model, result) is None


def test_operands_broadcast_to_the_result_and_no_further() -> None:
    model = FloatModel()
    left, row = model.const(VALUES), model.const([1, 2, 3])
    np.testing.assert_array_equal(evaluated(model, model.elementwise("SUB", left, row)), VALUES - [1, 2, 3])
    assert evaluated(model, model.op("SUB", [left, model.const([1, 2])], (2, 3))) is None
    huge = model.op("ADD", [model.const(np.zeros((1 << 12, 1))), model.const(np.zeros(1 << 12))], (1 << 12, 1 << 12))
    assert evaluated(model, huge) is None


def test_a_fused_activation_and_a_long_chain_are_not_followed() -> None:
    model = FloatModel()
    assert evaluated(model, model.elementwise("ADD", model.const(1), model.const(2), activation="relu")) is None
    x = model.const([1.0, -2.0])
    for _ in range(100):
        x = model.elementwise("NEG", x)
    assert evaluated(model, x) is None


def test_what_an_input_decides_is_no_constant() -> None:
    model = FloatModel()
    assert not is_computed_from_constants(model.graph, model.elementwise("NEG", model.input(2, 3)))
    assert not is_computed_from_constants(model.graph, model.op("TANH", [model.const(1)], ()))
