import numpy as np
import pytest

import litebnn
from litebnn.build.int8 import int8_constant
from litebnn.graph import Tensor
from tests.support.float_models import FloatModel, op_names, sign_weights
from tests.support.quantized_models import EXACT_GRID, Int8Model

WEIGHTS = sign_weights(np.random.default_rng(0), 8, 3, 3, 32)
SAMPLES = np.random.default_rng(1).integers(-128, 128, (8, 6, 6, 32)).astype(np.int8)


def zero_or_one(model: FloatModel, x: Tensor, rounding: str) -> Tensor:
    if rounding == "SIGN":
        sign = model.elementwise("SIGN", x)
        return model.elementwise(
            "MUL", model.elementwise("ADD", sign, model.elementwise("ABS", sign)), model.const(0.5)
        )
    clipped = model.elementwise("MINIMUM", model.elementwise("RELU", x), model.const(1))
    return model.elementwise(rounding, clipped)


@pytest.mark.usefixtures("library")
@pytest.mark.parametrize("rounding", ["ROUND", "FLOOR", "CEIL", "SIGN"])
def test_rounding_to_two_values_is_binary(rounding: str) -> None:
    model = FloatModel()
    x = zero_or_one(model, model.input(1, 6, 6, 32), rounding)
    source = model.finish(model.conv(x, WEIGHTS))
    converted = litebnn.convert_tflite(source)
    assert op_names(converted) == ["SUB", "LceQuantize", "LceBconv2d"]
    x = SAMPLES.astype(np.float32) / 16
    expected, actual = (litebnn.Interpreter(each).predict(x) for each in (source, converted))
    np.testing.assert_array_equal(actual, expected)


@pytest.mark.usefixtures("library")
@pytest.mark.parametrize("zero_point", [-128, 3])
def test_rounding_of_levels_is_binary_from_layer_to_layer(zero_point: int) -> None:
    model = Int8Model()
    x = model.sign8(model.input8((1 / 16, 3), 1, 6, 6, 32), "where", EXACT_GRID)
    for _ in range(2):
        bias = np.full(32, 1 / 16)
        x = model.conv8(x, WEIGHTS.repeat(4, axis=0), bias, (0.125, zero_point), same=True, activation="none")
        one = int8_constant("one", np.ones(()), 0.125, zero_point)
        clipped = model.as_(x, model.elementwise("RELU", model.as_(x, model.elementwise("MINIMUM", x, one), 2)), 2)
        x = model.quantize8(model.elementwise("ROUND", model.dequantize8(clipped)), (1.0, 0))
    model.conv8(x, np.sign(WEIGHTS), np.zeros(8), (1.0, 0), same=False, activation="none")
    source = model.finish(model.graph.ops[-1].output)
    converted, report = litebnn.convert_tflite(source, return_report=True)
    assert [layer.output for layer in report.layers] == ["bits", "bits", "INT8"]
    expected, actual = (litebnn.Interpreter(each).predict(SAMPLES) for each in (source, converted))
    np.testing.assert_array_equal(actual, expected)
