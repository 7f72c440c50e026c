"""Compares quantizers with larq's, if larq is installed: values and gradients, including the points at which their
formulas change.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.needs import imported

tf = imported("tensorflow", "keras")
keras = imported("keras", "keras")
lq = imported("litebnn.keras", "keras")

FORMS: list[tuple[str, dict[str, Any]]] = [
    ("SteSign", {}),
    ("SteSign", {"clip_value": 0.5}),
    ("SteSign", {"clip_value": None}),
    ("ApproxSign", {}),
    ("SwishSign", {}),
    ("SwishSign", {"beta": 10.0}),
    ("MagnitudeAwareSign", {}),
    ("MagnitudeAwareSign", {"clip_value": None}),
    ("SteHeaviside", {}),
    ("SteTern", {}),
    ("SteTern", {"threshold_value": 0.4, "clip_value": 2.0}),
    ("SteTern", {"ternary_weight_networks": True}),
    ("DoReFa", {}),
    ("DoReFa", {"k_bit": 4}),
    ("DoReFa", {"k_bit": 3, "mode": "weights"}),
    ("NoOp", {"precision": 1}),
]
BOUNDARIES = [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 0.05, -0.05, 1e-30, -1e-30, 1e3, -1e3]
VALUES = np.concatenate([BOUNDARIES, np.random.default_rng(0).normal(size=500)]).astype(np.float32).reshape(-1, 8)
UPSTREAM = np.random.default_rng(1).normal(size=VALUES.shape).astype(np.float32)


def value_and_gradient(quantizer: Any) -> tuple[Any, Any]:
    x = tf.constant(VALUES)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = quantizer(x)
    return y.numpy(), tape.gradient(y, x, output_gradients=tf.constant(UPSTREAM)).numpy()


@pytest.mark.parametrize(("name", "arguments"), FORMS)
def test_values_and_gradients_are_those_of_larq(name: str, arguments: dict[str, Any]) -> None:
    larq = imported("larq", "larq")
    ours = value_and_gradient(getattr(lq.quantizers, name)(**arguments))
    theirs = value_and_gradient(getattr(larq.quantizers, name)(**arguments))
    np.testing.assert_allclose(ours[0], theirs[0], atol=1e-6, rtol=1e-6)
    np.testing.assert_allclose(ours[1], theirs[1], atol=1e-6, rtol=1e-6)


@pytest.mark.parametrize("name", ["ste_sign", "approx_sign", "swish_sign"])
def test_signs_are_exact(name: str) -> None:
    signs = np.asarray(getattr(lq.quantizers, name)(VALUES))
    np.testing.assert_array_equal(signs, np.where(VALUES >= 0, 1, -1))


@pytest.mark.parametrize(("name", "arguments"), FORMS)
def test_a_quantizer_comes_back_from_its_configuration(name: str, arguments: dict[str, Any]) -> None:
    quantizer = getattr(lq.quantizers, name)(**arguments)
    again = lq.quantizers.get(lq.quantizers.serialize(quantizer))
    assert type(again) is type(quantizer)
    assert again.get_config() == quantizer.get_config()
    assert again.precision == quantizer.precision


def test_names_stand_for_quantizers() -> None:
    assert {name: type(lq.quantizers.get(name)) for name in lq.quantizers.BY_NAME} == lq.quantizers.BY_NAME
    assert isinstance(lq.quantizers.get("SteSign"), lq.quantizers.SteSign)
    assert lq.quantizers.get(None) is None
    assert lq.quantizers.get(np.sign) is np.sign
    for unknown in ("ste_sing", 3):
        with pytest.raises(ValueError, match="is no quantizer: expected .* ste_sign"):
            lq.quantizers.get(unknown)
    with pytest.raises(ValueError, match='DoReFa has no mode "inputs"'):
        lq.quantizers.DoReFa(mode="inputs")


@keras.saving.register_keras_serializable(package="test")
class HalfSign(lq.quantizers.Quantizer):
    precision = 1

    def quantized_values(self, inputs: Any) -> Any:
        return 0.5 * lq.quantizers.ste_sign(inputs)


def test_quantizers_of_ones_own() -> None:
    layer = lq.layers.QuantDense(3, kernel_quantizer=HalfSign(), kernel_constraint="weight_clip", use_bias=False)
    y = layer(np.ones((1, 1), np.float32))
    np.testing.assert_array_equal(np.abs(y), np.full((1, 3), 0.5))
    assert lq.optimizers.Bop.is_binary_variable(layer.kernel)
    assert isinstance(lq.layers.QuantDense.from_config(layer.get_config()).kernel_quantizer, HalfSign)
