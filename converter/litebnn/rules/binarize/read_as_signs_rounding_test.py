import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import litebnn
from litebnn.contract import ACTIVATION_RANGES, Activation
from litebnn.graph import Tensor
from litebnn.rules.build.int8 import int8_constant
from tests.support.float_models import ACTIVATIONS, FloatModel, op_names, sign_weights
from tests.support.level_spellings import RANGES, ROUNDINGS, Both, between, clamp, line, rounding
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


def lsq(model: FloatModel, x: Tensor, most: int, form: str) -> Tensor:
    """Appends LSQ's quantizer with the step 0.5. The form names how it clamps, and whether it does so first or last."""
    order, clamp = form.split()
    x = model.elementwise("MUL", x, model.const(2))
    if order == "first":
        x = model.elementwise("ROUND", between(model, x, 0, most, clamp))
    elif order == "last":
        x = between(model, model.elementwise("ROUND", x), 0, most, clamp)
    else:
        rounded = model.elementwise("ROUND", x)
        x = between(model, model.elementwise("ADD", model.elementwise("SUB", rounded, x), x), 0, most, clamp)
    return model.elementwise("MUL", x, model.const(0.5))


FORMS = [f"{order} {clamp}" for order in ("first", "last", "estimated") for clamp in ("RELU", "MAXIMUM", "SELECT")]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("most", [1, 3])
def test_rounding_before_a_clamp_is_as_good_as_rounding_after_it(form: str, most: int) -> None:
    model = FloatModel()
    source = model.finish(model.conv(lsq(model, model.input(1, 6, 6, 32), most, form), WEIGHTS, same=True))
    converted, report = litebnn.convert_tflite(source, return_report=True)
    assert [layer.binary for layer in report.layers] == [True]
    assert "ROUND" not in op_names(converted)
    x = SAMPLES.astype(np.float32) / 16  # ties of the rounding among them
    expected, actual = (litebnn.Interpreter(each).predict(x) for each in (source, converted))
    np.testing.assert_array_equal(actual, expected)


@pytest.mark.parametrize("layer", ["float", "binary", "dense", "sum", "pool"])
@pytest.mark.parametrize(("activation", "most"), [("relu", 1.0), ("relu6", 3.0), ("relu6", 6.0), ("relu1", 1.0)])
def test_the_clamp_of_a_quantizer_may_be_fused_into_the_layer_before(layer: str, activation: str, most: float) -> None:
    """PyTorch's exporter writes PACT as CONV_2D with a RELU, MINIMUM, MUL and ROUND. If it clamps at 6, it writes
    CONV_2D with a RELU6, MUL and ROUND."""
    rng = np.random.default_rng(0)
    model = FloatModel()
    image = model.input(1, 6, 6, 32)
    if layer == "sum":
        x = model.elementwise("ADD", image, model.elementwise("ABS", image), activation=activation)
    elif layer == "dense":
        flat = model.dense(model.reshape(image, 36, 32), np.eye(32), activation=activation)
        x = model.reshape(flat, 1, 6, 6, 32)
    else:
        x = model.sign(image) if layer == "binary" else image
        weights = (
            sign_weights(rng, 32, 3, 3, 32, alpha=False) if layer == "binary" else np.eye(32).reshape(32, 1, 1, 32)
        )
        x = model.conv(x, weights / 4, rng.integers(-4, 4, 32) / 4, same=True, activation=activation)
        x = model.max_pool(x, 2, 2) if layer == "pool" else x
    limited = x if most == 6 else model.elementwise("MINIMUM", x, model.const(most))
    rounded = model.elementwise("ROUND", model.elementwise("MUL", limited, model.const(0.5 if most == 6 else 1)))
    source = model.finish(model.conv(rounded, WEIGHTS))
    converted, report = litebnn.convert_tflite(source, return_report=True)
    assert report.layers[-1].binary
    x = SAMPLES.astype(np.float32) / 16
    expected, actual = (litebnn.Interpreter(each).predict(x) for each in (source, converted))
    np.testing.assert_array_equal(actual, expected)


@pytest.mark.filterwarnings("ignore:no binary layer")
@settings(max_examples=20)
@given(st.data())
def test_layers_of_random_roundings_compute_the_same(data: st.DataObject) -> None:
    """Layers of at most four even levels are binary, and right for all ties and limits, too."""
    model = FloatModel()
    x = model.input(1, 16, 4, 32)
    numbers = np.arange(-1024, 1024).astype(np.float32).reshape(x.dims) / 64
    now: Both = x, numbers
    low, size, form = data.draw(RANGES)
    lines, dyadic = st.sampled_from(["ADD", "SUB", "MUL", "DIV"]), st.sampled_from([-1.0, 0.25, 0.5, 2.0])
    activation = data.draw(st.sampled_from(["none", "relu", "relu6", "relu1"]))
    if activation != "none":
        now = model.conv(x, np.eye(32).reshape(32, 1, 1, 32), activation=activation), numbers
        now = now[0], np.clip(numbers, *ACTIVATION_RANGES[Activation(ACTIVATIONS[activation])])
    parts = [
        (rounding, (data.draw(ROUNDINGS),)),
        (clamp, (low, low + size, form)),
        (line, data.draw(st.tuples(lines, dyadic))),
    ]
    for part, arguments in data.draw(st.permutations(parts)):
        now = part(model, now, *arguments)
    source = model.finish(model.conv(now[0], WEIGHTS))
    converted, report = litebnn.convert_tflite(source, return_report=True)
    levels = np.unique(now[1])
    are_even = levels.size > 1 and np.ptp(np.diff(levels)) < 1e-6
    assert report.layers[-1].binary or levels.size > 4 or not are_even
    expected, actual = (litebnn.Interpreter(each).predict(numbers) for each in (source, converted))
    np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-5)


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
