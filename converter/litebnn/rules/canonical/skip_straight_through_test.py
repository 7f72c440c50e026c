import numpy as np
import pytest

import litebnn
from litebnn.graph import Tensor
from litebnn.rules.canonical.skip_straight_through import skip_straight_through
from litebnn.rules.phases import rules_of
from tests.support.float_models import FloatModel, op_names, rewritten


def estimated(model: FloatModel, x: Tensor, form: str, name: str = "ROUND") -> Tensor:
    rounded = model.elementwise(name, x)
    if form == "(r - x) + x":
        return model.elementwise("ADD", model.elementwise("SUB", rounded, x), x)
    if form == "x + (r - x)":
        return model.elementwise("ADD", x, model.elementwise("SUB", rounded, x))
    return model.elementwise("SUB", rounded, model.elementwise("SUB", x, x))


@pytest.mark.parametrize("form", ["(r - x) + x", "x + (r - x)", "r - (x - x)"])
@pytest.mark.parametrize("name", ["ROUND", "FLOOR", "CEIL"])
def test_what_is_left_is_the_rounding(form: str, name: str) -> None:
    model = FloatModel()
    x = model.input(1, 64)
    source = model.finish(model.elementwise("NEG", estimated(model, x, form, name)))
    result = litebnn.flatbuffer.write_model(rewritten(source, skip_straight_through, *rules_of("tidy")))
    assert op_names(result) == [name, "NEG"]
    sample = (np.random.default_rng(0).standard_normal((1, 64)) * 4).astype(np.float32)
    expected, actual = (litebnn.Interpreter(each).predict(sample) for each in (source, result))
    np.testing.assert_array_equal(actual, expected)


@pytest.mark.parametrize("activation", ["relu", "relu1", "relu6"])
def test_an_activation_stays(activation: str) -> None:
    model = FloatModel()
    x = model.input(1, 8)
    rest = model.elementwise("SUB", model.elementwise("ROUND", x), x)
    source = model.finish(model.elementwise("ADD", rest, x, activation=activation))
    result = op_names(rewritten(source, skip_straight_through, *rules_of("tidy")))
    assert result == ["ROUND", {"relu1": "RELU_N1_TO_1"}.get(activation, activation.upper())]


@pytest.mark.parametrize("kind", ["other term", "shift", "twice", "output"])
def test_other_sums_stay(kind: str) -> None:
    model = FloatModel()
    x = model.input(1, 8)
    rounded = model.elementwise("ROUND", x)
    if kind == "output":
        y = model.elementwise("ADD", model.elementwise("SUB", rounded, x), x)
    elif kind == "other term":
        y = model.elementwise("NEG", model.elementwise("ADD", model.elementwise("SUB", rounded, x), model.input(1, 8)))
    else:
        y = model.elementwise("NEG", model.elementwise("ADD", rounded, model.const(1) if kind == "shift" else rounded))
    source = model.finish(y)
    assert op_names(rewritten(source, skip_straight_through)) == op_names(source)
