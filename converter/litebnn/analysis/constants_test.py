from collections.abc import Callable

import numpy as np
import pytest

import litebnn
from litebnn.analysis.constants import constants_upstream, evaluate
from litebnn.graph import Tensor
from litebnn.rules.build.int8 import int8_constant
from tests.support.float_models import FloatModel, dyadic

VALUES = dyadic(np.random.default_rng(0), 4, 1, 6, largest=64)


def assert_as_in_runtime(build: Callable[[FloatModel], Tensor]) -> None:
    """Compares the value that litebnn computes for a constant expression with the value that the runtime computes. To
    get the runtime's value, a model adds the expression to its input.
    """
    model = FloatModel()
    value = build(model)
    result = model.finish(model.elementwise("ADD", model.input(*value.shape), value))
    expected = litebnn.Interpreter(result).predict(np.zeros(value.shape, np.float32))
    np.testing.assert_allclose(evaluate(model.graph, value), expected, rtol=1e-6)


def reduced(model: FloatModel, name: str, keep: bool) -> Tensor:
    shape = (4, 1, 1) if keep else (4, 1)
    return model.op(name, [model.const(VALUES), model.const([2], np.int32)], shape, keep_dims=keep)


@pytest.mark.parametrize("name", ["MEAN", "SUM", "REDUCE_MAX", "REDUCE_MIN"])
@pytest.mark.parametrize("keep", [False, True])
def test_a_reduction_is_what_the_runtime_computes(name: str, keep: bool) -> None:
    assert_as_in_runtime(lambda model: reduced(model, name, keep))


@pytest.mark.parametrize(
    "name", ["ABS", "CEIL", "EXP", "FLOOR", "NEG", "RELU", "RELU6", "RELU_N1_TO_1", "ROUND", "SIGN", "SQUARE", "TANH"]
)
def test_a_function_of_one_constant_is_what_the_runtime_computes(name: str) -> None:
    assert_as_in_runtime(lambda model: model.elementwise(name, model.const(VALUES)))


@pytest.mark.parametrize("name", ["ADD", "SUB", "MUL", "DIV", "MAXIMUM", "MINIMUM"])
def test_a_function_of_two_constants_is_what_the_runtime_computes(name: str) -> None:
    activation = "relu6" if name in ("ADD", "SUB", "MUL", "DIV") else "none"
    divisor = np.array([0.5, -1, 3, 7, 0.1, -0.3])
    assert_as_in_runtime(
        lambda model: model.elementwise(name, model.const(VALUES), model.const(divisor), activation=activation)
    )


def test_a_select_by_a_vector_picks_rows() -> None:
    def rows(model: FloatModel) -> Tensor:
        condition = model.elementwise("GREATER", model.const([1, -1, 0, 2]), model.const(0), type="BOOL")
        inputs = [condition, model.const(VALUES[:, 0, :4]), model.const(-np.ones((4, 4)))]
        return model.op("SELECT", inputs, (4, 4))

    assert_as_in_runtime(rows)


@pytest.mark.parametrize(
    ("name", "operand", "shape"),
    [
        ("TRANSPOSE", [1, 1, 2], (1, 4, 6)),
        ("TRANSPOSE", [0], (4, 1, 6)),
        ("RESHAPE", [5, 5], (5, 5)),
        ("SUM", [3], (4, 1)),
    ],
)
def test_an_operand_that_does_not_fit_gives_nothing(name: str, operand: list[int], shape: tuple[int, ...]) -> None:
    model = FloatModel()
    result = model.op(name, [model.const(VALUES), model.const(operand, np.int32)], shape, keep_dims=False)
    assert constants_upstream(model.graph, result) is not None
    assert evaluate(model.graph, result) is None


def test_operands_broadcast_to_the_result_and_no_further() -> None:
    model = FloatModel()
    assert evaluate(model.graph, model.op("SUB", [model.const(VALUES), model.const([1, 2])], VALUES.shape)) is None
    huge = model.op("ADD", [model.const(np.zeros((1 << 12, 1))), model.const(np.zeros(1 << 12))], (1 << 12, 1 << 12))
    assert evaluate(model.graph, huge) is None
    narrow = model.op("ADD", [model.const(np.ones((64, 1))), model.const(np.ones(64))], (64, 1))
    assert evaluate(model.graph, narrow) is None
    tile = model.op("BROADCAST_TO", [model.const(1), model.const([2], np.int32)], (1 << 15, 1 << 15))
    assert evaluate(model.graph, tile) is None


def test_a_long_chain_is_not_followed() -> None:
    model = FloatModel()
    x = model.const([1.0, -2.0])
    for _ in range(100):
        x = model.elementwise("NEG", x)
    assert evaluate(model.graph, x) is None


def test_what_an_input_decides_is_no_constant() -> None:
    model = FloatModel()
    assert constants_upstream(model.graph, model.elementwise("ADD", model.input(3), model.const([1, 2, 3]))) is None
    assert constants_upstream(model.graph, model.op("COS", [model.const(1)], (), table="CosOptions")) is None


def test_levels_are_not_taken_for_the_numbers_that_they_stand_for() -> None:
    model = FloatModel()
    levels = int8_constant("levels", np.array([0.5, -1.0]), 0.25, 3)
    total = model.op("ADD", [levels, levels], (2,), type="INT8")
    assert constants_upstream(model.graph, total) is None
    numbers = model.op("DEQUANTIZE", [levels], (2,))
    assert constants_upstream(model.graph, numbers) == {levels}
    doubled = evaluate(model.graph, model.elementwise("ADD", numbers, numbers))
    np.testing.assert_array_equal(doubled, np.array([1.0, -2.0], np.float32))
