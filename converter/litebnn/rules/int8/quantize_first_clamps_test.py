import numpy as np
import pytest

import litebnn
from litebnn.rules.int8.quantize_first import quantize_first
from tests.support.float_models import op_names, run_pass, sign_weights
from tests.support.quantized_models import Int8Model, TrainedModel

Grid = tuple[float, int]


@pytest.mark.parametrize("activation", ["RELU", "RELU6", "RELU_N1_TO_1"])
@pytest.mark.parametrize("grid", [(0.45, -128), (0.35, 3), (5.98 / 255, -128)])
def test_a_relu_after_the_batch_norm_of_a_trained_layer_is_none_of_floats(activation: str, grid: Grid) -> None:
    rng = np.random.default_rng(0)
    model = TrainedModel()
    x = model.sign(model.fake(model.input(1, 6, 6, 32), (1 / 16, 3)))
    x = model.conv(x, sign_weights(rng, 32, 3, 3, 32, alpha=False))
    x = model.elementwise("MUL", x, model.const(rng.choice([-1.03, 0.57, 1.01], 32)))
    x = model.elementwise(activation, model.elementwise("ADD", x, model.const(rng.standard_normal(32))))
    source = model.finish(model.fake(x, grid))
    converted = litebnn.convert_tflite(source)
    ends = grid[1] == -128 and (activation == "RELU" or (activation == "RELU6" and grid[0] < 0.1))
    clamps = [] if ends else [activation]
    assert op_names(converted) == ["QUANTIZE", "LceQuantize", "LceBconv2d", *clamps, "DEQUANTIZE"]
    samples = rng.standard_normal((4, 6, 6, 32)).astype(np.float32)
    expected, actual = (litebnn.Interpreter(each).predict(samples) for each in (source, converted))
    np.testing.assert_allclose(actual, expected, rtol=0, atol=1e-6)


def test_a_relu_of_levels_and_one_that_nothing_quantizes_stay() -> None:
    model = Int8Model()
    x = model.input8((0.5, 3), 1, 4)
    between = model.as_(x, model.elementwise("RELU", x), 2)
    built = model.model(model.quantize8(between, (0.25, 0)), model.elementwise("RELU", model.input(1, 4)))
    assert run_pass(quantize_first, built) == (False, ["RELU", "QUANTIZE", "RELU"])
