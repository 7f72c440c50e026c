import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import litebnn
from litebnn.rules.binarize.split_uneven_weights import split_uneven_weights
from litebnn.rules.thresholds.recognize_signs import recognize_signs
from tests.support.float_models import FloatModel, op_names, rewritten

RNG = np.random.default_rng(0)


def uneven(*shape: int) -> np.ndarray:
    """Weights of beta ± alpha, with numbers of their own for each output channel. The last channel has no alpha."""
    ends = [-1] + [1] * (len(shape) - 1)
    alpha, beta = RNG.uniform(0.5, 1, shape[0]), RNG.normal(size=shape[0])
    alpha[-1] = 0
    return (beta.reshape(ends) + alpha.reshape(ends) * RNG.choice([-1, 1], shape)).astype(np.float32)


@pytest.mark.usefixtures("library")
@settings(deadline=None, max_examples=20)
@given(st.data())
def test_layers_of_uneven_weights_are_binary(data: st.DataObject) -> None:
    draw = data.draw
    model = FloatModel()
    is_dense = draw(st.booleans())
    x = model.input(2, 64) if is_dense else model.input(1, 5, 6, 32)
    kind = draw(st.sampled_from(["sign", "two values", "with an offset"]))
    values = model.sign(x) if kind == "sign" else model.two_values(x, 0.25 if "offset" in kind else 0, 1)
    activation, bias = draw(st.sampled_from(["none", "relu"])), RNG.normal(size=8)
    if is_dense:
        y = model.dense(values, uneven(8, 64), bias, activation=activation)
    else:
        stride, is_same = draw(st.sampled_from([(1, 1), (2, 2)])), draw(st.booleans())
        y = model.conv(values, uneven(8, 3, 3, 32), bias, activation=activation, stride=stride, same=is_same)
    source = model.finish(y)
    converted, report = litebnn.convert_tflite(source, return_report=True)
    assert [layer.binary for layer in report.layers] == [True]
    sample = RNG.normal(size=x.shape).astype(np.float32)
    expected, actual = (litebnn.Interpreter(each).predict(sample) for each in (source, converted))
    np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-3)


@pytest.mark.parametrize("kind", ["even", "three values", "float input", "groups", "few weights"])
def test_other_layers_stay(kind: str) -> None:
    model = FloatModel()
    x = model.input(1, 6, 6, 2 if kind == "few weights" else 64)
    weights = uneven(8, 3, 3, {"groups": 32, "few weights": 2}.get(kind, 64))
    if kind == "even":
        weights = np.sign(weights)
    elif kind == "three values":
        weights[0, 0, 0, 0] = 7
    source = model.finish(model.conv(x if kind == "float input" else model.sign(x), weights))
    result = op_names(rewritten(source, recognize_signs, split_uneven_weights))
    assert result.count("CONV_2D") == 1
    assert "MUL" not in result
