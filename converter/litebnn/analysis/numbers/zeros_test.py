import numpy as np
import pytest

from litebnn.analysis.numbers.zeros import OF_SIGNS, ONE_OF_FEW, PADDED, zeros_of
from litebnn.graph import Tensor
from tests.support.float_models import FloatModel, sign_weights
from tests.zeros.chains import chained

RNG = np.random.default_rng(0)


def relu(model: FloatModel, x: Tensor) -> Tensor:
    return model.elementwise("RELU", x)


def shifted_relu(model: FloatModel, x: Tensor) -> Tensor:
    return relu(model, model.elementwise("ADD", x, model.const(1)))


def flat(model: FloatModel, x: Tensor) -> Tensor:
    return model.op("PRELU", [x, model.const([[[0.25, 0, 1]]])], x.dims)


def signs(model: FloatModel, x: Tensor, **options: bool) -> Tensor:
    return model.conv(model.sign(x), sign_weights(RNG, 4, 2, 2, 3), **options)


def summed_channels(model: FloatModel, x: Tensor) -> Tensor:
    sums = signs(model, x)
    return model.depthwise_conv(sums, sign_weights(RNG, 1, 2, 2, sums.channels), np.zeros(sums.channels), same=False)


CASES = {
    "anything": (lambda m, x: x, set()),
    "activations": (lambda m, x: chained(m, x, ["TANH", "LEAKY_RELU", "doubled", "raised"]), set()),
    "relu": (relu, {"RELU gives 0"}),
    "two magnitudes": (
        lambda m, x: m.elementwise("ADD", x, m.elementwise("ABS", x)),
        {"it is 0 on one side of a number"},
    ),
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
    "hardtanhs": (
        lambda m, x: m.elementwise("ADD", *(m.elementwise("RELU_N1_TO_1", each) for each in (x, m.input(*x.dims)))),
        {"numbers of clamps or padding cancel in a sum"},
    ),
    "clamped sum": (lambda m, x: chained(m, x, ["clamped sum", "max"]), {"the activation of ADD gives 0"}),
    "no zeros of both": (lambda m, x: chained(m, relu(m, x), ["by channels"]), {"RELU gives 0"}),
    "slopes of 0": (flat, {"PRELU gives 0"}),
    "slope of 0": (lambda m, x: m.op("LEAKY_RELU", [x], x.dims, alpha=0.0), {"LEAKY_RELU gives 0"}),
    "slope": (lambda m, x: m.op("LEAKY_RELU", [x], x.dims, alpha=0.1), set()),
    "floor": (lambda m, x: m.elementwise("FLOOR_DIV", x, m.const(2)), {"FLOOR_DIV gives 0"}),
    "mask": (lambda m, x: m.two_values(x), {ONE_OF_FEW}),
    "pooled mask": (lambda m, x: chained(m, m.two_values(x), ["max"]), {ONE_OF_FEW}),
    "sign": (lambda m, x: m.elementwise("SIGN", x), set()),
    "sign of a relu": (lambda m, x: m.elementwise("SIGN", relu(m, x)), {"RELU gives 0"}),
    "sign of sums": (lambda m, x: m.elementwise("SIGN", signs(m, x)), {OF_SIGNS}),
    "clamped sums": (lambda m, x: signs(m, x, activation="relu"), {"the activation of CONV_2D gives 0"}),
    "transposed": (lambda m, x: m.transposed_conv(m.sign(x), sign_weights(RNG, 4, 3, 3, 3)), {OF_SIGNS}),
    "largest sums": (lambda m, x: m.op("REDUCE_MAX", [signs(m, x), m.const([1], np.int32)], (1, 1, 3, 4)), {OF_SIGNS}),
    "sums of each channel": (summed_channels, {OF_SIGNS}),
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
