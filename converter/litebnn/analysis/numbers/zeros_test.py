import numpy as np
import pytest

from litebnn.analysis.numbers.zeros import OF_SIGNS, PADDED, zeros_of
from litebnn.graph import Tensor
from tests.support.float_models import FloatModel, sign_weights
from tests.zeros.chains import chained

RNG = np.random.default_rng(0)


def relu(model: FloatModel, x: Tensor) -> Tensor:
    return model.elementwise("RELU", x)


def shifted_relu(model: FloatModel, x: Tensor) -> Tensor:
    return relu(model, model.elementwise("ADD", x, model.const(1)))


CASES = {
    "anything": (lambda m, x: x, set()),
    "activations": (lambda m, x: chained(m, x, ["TANH", "LEAKY_RELU", "doubled", "raised"]), set()),
    "relu": (relu, {"RELU gives 0"}),
    "moved relu": (lambda m, x: chained(m, relu(m, x), ["max", "TANH", "of channels", "nearest"]), {"RELU gives 0"}),
    "raised relu": (lambda m, x: chained(m, relu(m, x), ["raised"]), set()),
    "one relu": (lambda m, x: m.elementwise("ADD", relu(m, x), x), set()),
    "two relus": (lambda m, x: m.elementwise("SUB", relu(m, x), shifted_relu(m, x)), {"RELU gives 0"}),
    "masked": (lambda m, x: m.elementwise("MUL", x, relu(m, x)), {"RELU gives 0"}),
    "hard swish": (lambda m, x: m.elementwise("HARD_SWISH", x), {"HARD_SWISH gives 0"}),
    "at least zero": (
        lambda m, x: m.elementwise("MAXIMUM", x, m.const(0)),
        {"MAXIMUM gives 0", "it has constants of 0"},
    ),
    "padded": (lambda m, x: chained(m, x, ["zeros", "max", "doubled"]), {PADDED}),
    "padded with ones": (lambda m, x: chained(m, x, ["ones"]), set()),
    "no scale": (lambda m, x: m.elementwise("MUL", x, m.const([0, 1, 2])), {"it has constants of 0"}),
    "sum of signs": (lambda m, x: m.elementwise("ADD", m.sign(x), m.sign(m.input(1, 4, 4, 3))), {OF_SIGNS}),
    "three signs": (lambda m, x: m.conv(m.sign(x), sign_weights(RNG, 4, 1, 1, 3)), set()),
    "with an offset": (lambda m, x: m.conv(m.sign(x), sign_weights(RNG, 4, 1, 1, 3), np.full(4, 0.1)), set()),
    "clamped sum": (lambda m, x: chained(m, x, ["clamped sum", "max"]), {"the activation of ADD gives 0"}),
    "no zeros of both": (lambda m, x: chained(m, relu(m, x), ["by channels"]), {"RELU gives 0"}),
    "layer": (lambda m, x: m.conv(relu(m, x), RNG.standard_normal((4, 1, 1, 3))), set()),
}


@pytest.mark.parametrize("case", CASES)
def test_why_zeros_are_likely(case: str) -> None:
    model = FloatModel()
    build, reasons = CASES[case]
    assert zeros_of(model.graph, build(model, model.input(1, 4, 4, 3))) == reasons


@pytest.mark.parametrize(("bias", "reasons"), [(0, {"RELU gives 0"}), (0.5, set())])
def test_a_depthwise_convolution_of_a_relu(bias: float, reasons: set[str]) -> None:
    model = FloatModel()
    x = relu(model, model.input(1, 4, 4, 3))
    assert (
        zeros_of(model.graph, model.depthwise_conv(x, RNG.standard_normal((1, 1, 1, 3)), np.full(3, bias))) == reasons
    )
