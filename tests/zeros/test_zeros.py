"""sign(x) is 0 where x is 0. The conversions of networks in which that happens often give the same numbers as the
source, with assume_nonzero and without."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import litebnn
from litebnn.graph import Array, Tensor
from tests.support.float_models import FloatModel, dyadic, sign_weights
from tests.zeros.chains import CHAIN, chained, chains

RNG = np.random.default_rng(0)
NEVER_NEGATIVE = ("RELU", "RELU6", "ABS", "SQUARE", "RELU_0_TO_1")
pytestmark = [pytest.mark.usefixtures("library"), pytest.mark.filterwarnings("ignore:no binary layer")]


def of_sign(model: FloatModel, x: Tensor, layer: str = "conv") -> Tensor:
    """Adds a layer that reads the sign of x."""
    sign = model.elementwise("SIGN", x)
    if layer == "dense":
        count = sign.dims[1] * sign.dims[2] * sign.channels
        return model.dense(model.reshape(sign, 1, count), sign_weights(RNG, 8, count))
    if layer == "depthwise":
        return model.depthwise_conv(sign, sign_weights(RNG, 1, 2, 2, sign.channels), np.zeros(sign.channels))
    return model.conv(sign, sign_weights(RNG, 8, 2, 2, sign.channels), same=layer == "padded conv")


def samples(*shape: int) -> Array:
    """Samples in which a tenth of the values are zeros, and all others no multiples of 1/8."""
    rng = np.random.default_rng(1)
    return np.where(rng.random(shape) < 0.1, 0, dyadic(rng, *shape) + np.float32(1 / 16)).astype(np.float32)


def binary_of(source: bytes, x: Array, **options: bool) -> list[bool]:
    """Checks that the converted model gives the source's outputs, and returns which layers are binary."""
    converted, report = litebnn.convert_tflite(source, return_report=True, **options)
    expected, actual = (litebnn.Interpreter(each).predict(x) for each in (source, converted))
    np.testing.assert_array_equal(actual, expected)
    return [layer.binary for layer in report.layers]


@settings(max_examples=20)
@given(
    activation=st.sampled_from(NEVER_NEGATIVE),
    names=chains(*sorted(set(CHAIN) - {"at most 0", "ones", "minus ones"}), longest=3),
    layer=st.sampled_from(["conv", "padded conv", "dense"]),
)
def test_the_sign_of_what_is_never_negative_needs_no_option(activation: str, names: list[str], layer: str) -> None:
    model = FloatModel()
    x = chained(model, model.input(1, 12, 12, 6), [activation, *names])
    source, x = model.finish(of_sign(model, x, layer)), samples(1, 12, 12, 6)
    for assume_nonzero in (False, True):
        assert binary_of(source, x, assume_nonzero=assume_nonzero) == [True]
