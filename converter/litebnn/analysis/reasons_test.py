import numpy as np
import pytest

import litebnn
from litebnn.analysis.grids import parameters
from litebnn.analysis.reasons import NO_SIGN, why_no_sign
from litebnn.analysis.signs import find_sign
from tests.support.float_models import FloatModel


def test_the_quantizer_is_named() -> None:
    model = FloatModel()
    x = model.input(1, 4, 4, 32)
    levels = model.elementwise("MUL", model.op("ROUND", [x], x.dims), model.const(1 / 3))
    heaviside = model.elementwise("SIGN", model.elementwise("RELU", x))
    flag = model.op("CAST", [model.elementwise("LESS", x, model.const(0), type="BOOL")], x.dims)
    # The constants differ between channels, so their SIGN is not known to take only two numbers.
    constants = model.const(np.arange(-256, 256).reshape(x.dims) % 100, np.int8)
    constants.quantization = parameters(1.0, 0)
    for tensor, reason in (
        (levels, "DoReFa"),
        (heaviside, "two values"),
        (model.pad(model.elementwise("SIGN", x), [(1, 1), (1, 1)]), "ternary"),
        (model.elementwise("SIGN", model.op("DEQUANTIZE", [constants], x.dims)), "ternary"),
        (flag, "two values"),
        (
            model.elementwise("ROUND", model.elementwise("RELU", model.elementwise("MINIMUM", x, model.const(0.2)))),
            "is 0,",
        ),
        (model.elementwise("RELU", x), NO_SIGN),
        (x, NO_SIGN),
        (model.const(np.ones(3)), NO_SIGN),
    ):
        assert reason in why_no_sign(model.graph, tensor)


@pytest.mark.parametrize(("grid", "told"), [((1 / 127, 0), True), ((1.0, -128), False), ((4.0, 0), False)])
def test_a_grid_that_does_not_hold_the_three_values_of_a_sign_is_named(grid: tuple[float, int], told: bool) -> None:
    model = FloatModel()
    x = model.input(1, 4, 4, 32)
    ternary = model.op("QUANTIZE", [model.elementwise("SIGN", x)], x.dims, type="INT8")
    ternary.quantization = parameters(*grid)
    shifted = model.elementwise("ADD", model.op("DEQUANTIZE", [ternary], x.dims), model.const(0.1))
    sign = model.elementwise("SIGN", shifted)
    assert (find_sign(model.graph, sign) is not None) == told
    if not told:
        assert f'the grid of "{ternary.name}" does not tell the three' in why_no_sign(model.graph, sign)


@pytest.mark.filterwarnings("ignore:no binary layer")
@pytest.mark.parametrize("activation", ["none", "relu", "relu6"])
@pytest.mark.parametrize("factor", [1.0, 2.0])
@pytest.mark.parametrize("layer", ["binary", "float"])
def test_the_activation_of_a_pool_of_signs_is_named(layer: str, factor: float, activation: str) -> None:
    model, rng = FloatModel(), np.random.default_rng(0)
    signs = model.elementwise("MUL", model.sign(model.input(1, 8, 8, 32)), model.const(factor))
    weights = rng.choice([-1.0, 1.0], (8, 3, 3, 32)) if layer == "binary" else rng.standard_normal((8, 3, 3, 32))
    source = model.finish(model.conv(model.max_pool(signs, 2, 2, activation=activation), weights))
    _, report = litebnn.convert_tflite(source, return_report=True)
    [found] = report.layers
    assert found.binary == (layer == "binary" and activation == "none")
    if activation != "none":
        assert list(found.reasons) == ["the activation of MAX_POOL_2D stands between the sign and it"]
    assert NO_SIGN not in found.reasons
