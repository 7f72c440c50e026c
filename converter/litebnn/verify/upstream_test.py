from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import litebnn
from litebnn.flatbuffer import read_model
from litebnn.graph import Tensor
from litebnn.verify.verification import verify_conversion
from tests.support.float_models import FloatModel, sign_weights, sums_of_tenths, with_changed

Form = Callable[[FloatModel, Tensor], Tensor]
SAMPLES = np.random.default_rng(1).standard_normal((2, 8, 8, 32)).astype(np.float32)


def scaled(m: FloatModel, x: Tensor) -> Tensor:
    return m.elementwise("MUL", x, m.const(1e8))


def clamped(m: FloatModel, x: Tensor) -> Tensor:
    """clamp(x / 1e-8, -1, 1), as PyTorch's exporter writes it."""
    above = m.elementwise("MAXIMUM", m.elementwise("DIV", x, m.const(1e-8)), m.const(-1))
    return m.elementwise("MINIMUM", above, m.const(1))


def relu6_around_3(m: FloatModel, x: Tensor) -> Tensor:
    return m.elementwise("SUB", m.elementwise("RELU6", m.elementwise("ADD", scaled(m, x), m.const(3))), m.const(3))


def channels_first(m: FloatModel, x: Tensor) -> Tensor:
    factors = m.const(1e6 * np.arange(1, 33).reshape(32, 1, 1))
    x = m.elementwise("MUL", m.transpose(x, 0, 3, 1, 2), factors)
    return m.transpose(m.elementwise("RELU_N1_TO_1", x), 0, 2, 3, 1)


FORMS: dict[str, Form] = {
    "clamp": clamped,
    "hardtanh": lambda m, x: m.elementwise("RELU_N1_TO_1", scaled(m, x)),
    "fused": lambda m, x: m.elementwise("MUL", x, m.const(1e8), activation="relu1"),
    "tanh": lambda m, x: m.elementwise("TANH", scaled(m, x)),
    "sigmoid": lambda m, x: m.elementwise("SUB", m.elementwise("LOGISTIC", scaled(m, x)), m.const(0.5)),
    "relu6": relu6_around_3,
    "overflow": lambda m, x: m.elementwise("MUL", x, m.const(1e38)),
    "pool": lambda m, x: m.max_pool(clamped(m, x), 2, 2),
    "channels first": channels_first,
}


def network(form: Form, sign: str, *, is_read: bool = False) -> bytes:
    """A binary layer whose float sums are often next to zero, `form` of these sums, and a layer of their signs. If
    `is_read` is true, `form` is also added to the output of this layer.
    """
    rng = np.random.default_rng(0)
    model = FloatModel()
    x = sums_of_tenths(model, rng, model.sign(model.input(1, 8, 8, 32)), 32)
    x = model.elementwise("ADD", x, model.const(np.float32(0.1) * rng.choice([-16, -8, 8, 16], 32)))
    before = form(model, x)
    signs = model.elementwise("SIGN", before) if sign == "SIGN" else model.sign(before, sign)
    y = model.conv(signs, sign_weights(rng, 32, 3, 3, 32), same=True)
    return model.finish(model.elementwise("ADD", y, before) if is_read else y)


@pytest.mark.usefixtures("library")
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("sign", ["where_ge", "where_gt", "read"])
def test_rounding_is_told_from_mistakes_before_clamps_and_scales(form: str, sign: str) -> None:
    is_read = sign == "read"
    if is_read and form == "overflow":
        pytest.skip("numbers of 1e38 overflow in the sum")
    source = network(FORMS[form], "where_ge" if is_read else sign, is_read=is_read)
    converted = litebnn.convert_tflite(source)
    found = verify_conversion(source, converted, [SAMPLES])
    assert found.flipped[0].flipped > 10
    assert found.flipped[0].distance < 1e-5 * found.flipped[0].mean_distance
    layer = next(op for op in read_model(converted).ops() if op.name == "LceBconv2d")
    if layer.output.type == "INT32":
        broken = with_changed(converted, {"LceBconv2d"}, 4, lambda thresholds: thresholds + 4)
    else:
        broken = with_changed(converted, {"LceBconv2d"}, 2, lambda multipliers: -multipliers)
    with pytest.raises(litebnn.ConversionError, match="the first layer that differs is"):
        verify_conversion(source, broken, [SAMPLES])
