import numpy as np
import pytest

from litebnn.rewriting.int8 import parameters
from litebnn.rewriting.reasons import NO_SIGN, why_no_sign
from litebnn.rewriting.signs import find_sign
from tests.support.float_models import FloatModel


def test_the_quantizer_is_named() -> None:
    model = FloatModel()
    x = model.input(1, 4, 4, 32)
    levels = model.elementwise("MUL", model.op("ROUND", [x], x.dims), model.const(1 / 3))
    heaviside = model.elementwise("SIGN", model.elementwise("RELU", x))
    flag = model.op("CAST", [model.elementwise("LESS", x, model.const(0), type="BOOL")], x.dims)
    # Of values that differ, so that nobody takes the sign for one number.
    constants = model.const(np.arange(-256, 256).reshape(x.dims) % 100, np.int8)
    constants.quantization = parameters(1.0, 0)
    for tensor, reason in (
        (levels, "DoReFa"),
        (heaviside, "heaviside"),
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
