import numpy as np
import pytest

import litebnn
from litebnn.flatbuffer import read_model
from litebnn.rules.canonical.recognize_prelu import recognize_prelu
from tests.support.float_models import FloatModel, assert_same_values, op_names, rewritten, run_pass, sign_weights

SLOPES = np.linspace(0.1, 0.9, 16, dtype=np.float32)


def dense_prelu(second: float = -1.0, activation: str = "relu", sign: bool = False) -> bytes:
    """Makes a dense layer and a PReLU, as litert-torch writes them, followed by another dense layer."""
    rng = np.random.default_rng(0)
    weights, bias = 2 * sign_weights(rng, 16, 32), rng.normal(size=16).astype(np.float32)
    model = FloatModel()
    x = model.input(2, 32)
    x = model.sign(x) if sign else x
    above = model.dense(x, weights, bias, activation=activation)
    below = model.dense(x, second * weights, second * bias, activation=activation)
    y = model.elementwise("SUB", above, model.elementwise("MUL", below, model.const(SLOPES)))
    return model.finish(model.dense(model.sign(y), sign_weights(rng, 4, 16)) if sign else y)


def test_a_prelu_after_a_dense_layer_is_one_op() -> None:
    source = dense_prelu()
    result = rewritten(source, recognize_prelu, recognize_prelu)
    assert op_names(result)[0] == "FULLY_CONNECTED"
    assert op_names(result)[-1] == "PRELU"
    assert_same_values(source, result)


def test_the_layer_is_one_in_the_report_and_its_prelu_a_threshold() -> None:
    source = dense_prelu(sign=True)
    converted, report = litebnn.convert_tflite(source, return_report=True)
    assert [layer.output for layer in report.layers] == ["bits", "FLOAT32"]
    assert "PRELU" not in op_names(converted)
    assert_same_values(source, read_model(converted))


@pytest.mark.parametrize("source", [dense_prelu(-2.0), dense_prelu(1.0), dense_prelu(activation="none")])
def test_other_layers_stay_two(source: bytes) -> None:
    assert op_names(rewritten(source, recognize_prelu)).count("FULLY_CONNECTED") == 2


def test_opposite_weights_of_layers_with_other_options_are_two() -> None:
    model, weights = FloatModel(), sign_weights(np.random.default_rng(0), 16, 32)
    x = model.input(2, 32)
    above = model.dense(x, weights)
    built = model.model(above, model.dense(x, -weights, activation="relu"))
    assert run_pass(recognize_prelu, built) == (False, ["FULLY_CONNECTED"] * 2)
