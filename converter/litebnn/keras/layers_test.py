"""Compares layers with larq's on the same weights, if larq is installed: outputs, and gradients of inputs and
weights."""

from __future__ import annotations

import re
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.needs import imported

tf = imported("tensorflow", "keras")
keras = imported("keras", "keras")
lq = imported("litebnn.keras", "keras")

SIGNS = {"input_quantizer": "ste_sign", "kernel_quantizer": "ste_sign", "kernel_constraint": "weight_clip"}
DEPTHWISE = {"input_quantizer": "ste_sign", "depthwise_quantizer": "ste_sign", "depthwise_constraint": "weight_clip"}
SEPARABLE = {**DEPTHWISE, "pointwise_quantizer": "approx_sign", "pointwise_constraint": "weight_clip"}
IMAGE, SEQUENCE, VOLUME = (2, 9, 8, 6), (2, 9, 6), (2, 5, 6, 7, 4)
LAYERS: list[tuple[str, tuple[Any, ...], tuple[Any, ...], dict[str, Any]]] = [
    ("QuantDense", (2, 12), (5,), {**SIGNS, "activation": "relu"}),
    ("QuantDense", (2, 3, 12), (5,), {**SIGNS, "kernel_quantizer": "magnitude_aware_sign", "use_bias": False}),
    ("QuantConv1D", SEQUENCE, (4, 3), {**SIGNS, "padding": "causal", "dilation_rate": 2}),
    ("QuantConv1D", SEQUENCE, (4, 3, 2, "same", 1.0), SIGNS),
    ("QuantConv2D", IMAGE, (4, 3), {**SIGNS, "padding": "same", "strides": 2}),
    ("QuantConv2D", IMAGE, (4, 3, 2, "same", 1.0), SIGNS),
    ("QuantConv2D", IMAGE, (4, (4, 2), (3, 2), "same", -1.0), {**SIGNS, "kernel_quantizer": "swish_sign"}),
    ("QuantConv2D", IMAGE, (4, 1, 2, "same", 1.0), {**SIGNS, "groups": 2}),
    ("QuantConv2D", IMAGE, (4, 3), {**SIGNS, "padding": "same", "pad_values": 1.0, "dilation_rate": (2, 2)}),
    ("QuantConv2D", IMAGE, (4, 3), {"input_quantizer": "dorefa_quantizer", "kernel_quantizer": "ste_tern"}),
    ("QuantConv2D", IMAGE, (4, 3), {"kernel_quantizer": "ste_heaviside", "kernel_constraint": "weight_clip"}),
    ("QuantConv2D", IMAGE, (4, 3), {"activation": "tanh", "use_bias": False}),
    ("QuantConv3D", VOLUME, (4, 3, 2, "same", 1.0), SIGNS),
    ("QuantDepthwiseConv2D", IMAGE, (3, 2, "same", 1.0, 2), DEPTHWISE),
    ("QuantDepthwiseConv2D", IMAGE, (3,), {**DEPTHWISE, "padding": "same"}),
    ("QuantSeparableConv1D", SEQUENCE, (4, 3, 1, "same", 1.0), {**SEPARABLE, "depth_multiplier": 2}),
    ("QuantSeparableConv2D", IMAGE, (4, 3, 2, "same", 1.0), SEPARABLE),
    ("QuantSeparableConv2D", IMAGE, (4, 3), SEPARABLE),
    ("QuantConv2DTranspose", IMAGE, (4, 3, 2), {**SIGNS, "padding": "same"}),
    ("QuantConv3DTranspose", VOLUME, (4, 3, 2), {**SIGNS, "padding": "valid"}),
]


def make(package: Any, name: str, arguments: tuple[Any, ...], options: dict[str, Any]) -> Any:
    return getattr(package.layers, name)(*arguments, **options)


def without_shapes(config: Any) -> Any:
    """The configuration of a layer. The shapes with which the layer and its quantizers were built are left out."""
    if not isinstance(config, dict):
        return config
    return {key: without_shapes(value) for key, value in config.items() if key != "build_config"}


def outputs_and_gradients(layer: Any, x: Any) -> list[Any]:
    inputs = tf.constant(x)
    with tf.GradientTape() as tape:
        tape.watch(inputs)
        y = layer(inputs)
    upstream = tf.constant(np.random.default_rng(2).normal(size=y.shape).astype(np.float32))
    # larq calls the trained variable `latent_variable`. In Keras 3 on TensorFlow, the attribute `value` contains
    # TensorFlow's own variable.
    weights = layer.trainable_weights
    latent = [getattr(w, "latent_variable", w) if isinstance(w, tf.Variable) else w.value for w in weights]
    return [y, *tape.gradient(y, [inputs, *latent], output_gradients=upstream)]


@pytest.mark.parametrize(("name", "shape", "arguments", "options"), LAYERS)
def test_outputs_and_gradients_are_those_of_larq(
    name: str, shape: tuple[int, ...], arguments: tuple[Any, ...], options: dict[str, Any]
) -> None:
    larq = imported("larq", "larq")
    rng = np.random.default_rng(0)
    ours, theirs = (make(package, name, arguments, options) for package in (lq, larq))
    for layer in (ours, theirs):
        layer.build(shape)
    # The latent weights are multiples of 0.05 plus 0.025, which keeps them away from points at which a gradient jumps.
    values = [(np.round(rng.normal(size=w.shape) * 20) / 20 + 0.025).astype(np.float32) for w in theirs.get_weights()]
    for layer in (ours, theirs):
        layer.set_weights(values)
    x = rng.normal(size=shape).astype(np.float32)
    found, expected = (outputs_and_gradients(layer, x) for layer in (ours, theirs))
    assert len(found) == len(expected)
    for actual, desired in zip(found, expected, strict=True):
        np.testing.assert_allclose(actual, desired, rtol=1e-6, atol=1e-6 * max(1, np.abs(desired).max()))


@pytest.mark.parametrize(("name", "shape", "arguments", "options"), LAYERS)
def test_a_saved_model_computes_the_same(
    name: str, shape: tuple[int, ...], arguments: tuple[Any, ...], options: dict[str, Any], tmp_path: Path
) -> None:
    layer = make(lq, name, arguments, options)
    model = keras.Sequential([keras.Input(shape[1:]), layer])
    x = np.random.default_rng(0).normal(size=shape).astype(np.float32)
    expected = np.asarray(model(x))
    assert model.output_shape == (None, *expected.shape[1:])
    model.save(tmp_path / "model.keras")
    again = keras.models.load_model(tmp_path / "model.keras")
    assert type(again.layers[0]) is type(layer)
    assert without_shapes(again.layers[0].get_config()) == without_shapes(layer.get_config())
    np.testing.assert_array_equal(again(x), expected)


def test_sizes_that_are_unknown_until_a_call() -> None:
    layer = lq.layers.QuantConv2D(32, 3, strides=2, padding="same", pad_values=1.0, **SIGNS)
    model = keras.Sequential([keras.Input((None, None, 32)), layer])
    assert model.output_shape == (None, None, None, 32)
    compiled = tf.function(model)
    for size in (5, 8):
        assert compiled(np.ones((1, size, size, 32), np.float32)).shape == (1, (size + 1) // 2, (size + 1) // 2, 32)


def test_a_scope_shows_the_quantized_weights(tmp_path: Path) -> None:
    model = keras.Sequential([keras.Input((8,)), lq.layers.QuantDense(3, **SIGNS)])
    latent = model.get_weights()[0]
    with lq.context.quantized_scope(True):
        assert lq.context.should_quantize()
        np.testing.assert_array_equal(model.get_weights()[0], np.where(latent >= 0, 1, -1))
        model.save_weights(tmp_path / "binary.weights.h5")
    np.testing.assert_array_equal(model.get_weights()[0], latent)
    again = keras.models.clone_model(model)
    with lq.context.quantized_scope(True):
        again.load_weights(tmp_path / "binary.weights.h5")
    np.testing.assert_array_equal(again.get_weights()[0], np.where(latent >= 0, 1, -1))
    with pytest.raises(RuntimeError), lq.context.quantized_scope(True):
        raise RuntimeError
    assert not lq.context.should_quantize()


def test_binary_weights_without_a_constraint_are_warned_of() -> None:
    with pytest.warns(UserWarning, match='"unclipped" has a binary pointwise_quantizer and no pointwise_constraint'):
        lq.layers.QuantSeparableConv2D(4, 3, pointwise_quantizer="ste_sign", name="unclipped")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        lq.layers.QuantDense(4, kernel_quantizer=lq.quantizers.NoOp(precision=1))
        lq.layers.QuantDense(4, kernel_quantizer="ste_tern")


@pytest.mark.parametrize("name", [name for name in vars(lq.layers) if re.match("Quant[A-Z]", name)])
def test_a_warning_points_at_the_line_that_makes_the_layer(name: str) -> None:
    kind = getattr(lq.layers, name)
    quantizer = {next(iter(kind.weight_quantizers.values())): "ste_sign"}
    sizes = [3] if name in ("QuantDense", "QuantDepthwiseConv2D") else [3, 3]
    with pytest.warns(UserWarning, match="latent weights may drift") as caught:
        kind(*sizes, **quantizer)
    assert [warning.filename for warning in caught] == [__file__]


def test_mistakes_are_told() -> None:
    with pytest.raises(ValueError, match="pads with 0: pad_values is 1"):
        lq.layers.QuantConv1D(4, 3, padding="causal", pad_values=1)
    with pytest.raises(ValueError, match="is no quantizer"):
        lq.layers.QuantDense(4, kernel_quantizer="ste_sing")
    with pytest.raises(ValueError, match="pad_values"):
        lq.layers.QuantDense(4, pad_values=1.0)


def test_names_of_activations_and_constraints() -> None:
    layer = lq.layers.QuantDense(4, activation="leaky_tanh", kernel_constraint="weight_clip", bias_constraint="non_neg")
    assert layer.activation is lq.activations.leaky_tanh
    assert layer.kernel_constraint.clip_value == 1.0
    assert isinstance(layer.bias_constraint, keras.constraints.NonNeg)
    x = np.array([-3.0, -1.0, 0.25, 1.0, 2.0], np.float32)
    np.testing.assert_allclose(lq.activations.leaky_tanh(x), [-1.4, -1, 0.25, 1, 1.2], rtol=1e-6)
    np.testing.assert_allclose(lq.activations.hard_tanh(x), [-1, -1, 0.25, 1, 1])
    np.testing.assert_allclose(lq.constraints.WeightClip(0.5)(x), [-0.5, -0.5, 0.25, 0.5, 0.5])


@pytest.mark.parametrize("shape", [(2, 5, 4, 6), (2, 6)])
@pytest.mark.parametrize("scale", [True, False])
def test_a_batch_norm_is_keras_own(scale: bool, shape: tuple[int, ...], tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    model = keras.Sequential([keras.Input(shape[1:]), lq.layers.BatchNormalization(scale=scale)])
    own = keras.Sequential([keras.Input(shape[1:]), keras.layers.BatchNormalization(scale=scale)])
    for each in (model, own):
        each.set_weights([np.abs(rng.standard_normal(6)) + 0.5 for _ in each.get_weights()])
    own.set_weights(model.get_weights())
    x = rng.standard_normal(shape).astype(np.float32)
    for training in (False, True):
        found, expected = (np.asarray(each(x, training=training)) for each in (model, own))
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)
    np.testing.assert_array_equal(model.get_weights(), own.get_weights())
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    np.testing.assert_array_equal(np.asarray(loaded(x)), np.asarray(model(x)))


@pytest.mark.parametrize("dtype", ["float16", "mixed_float16", "float64"])
def test_a_batch_norm_of_other_types_is_keras_own(dtype: str) -> None:
    kinds = lq.layers.BatchNormalization, keras.layers.BatchNormalization
    found, expected = (kind(dtype=dtype)(np.full((1, 2, 2, 3), 2.0)) for kind in kinds)
    assert found.dtype == expected.dtype
    np.testing.assert_allclose(np.asarray(found, np.float64), np.asarray(expected, np.float64), rtol=1e-3)


@pytest.mark.skipif(keras.backend.backend() != "tensorflow", reason="other backends take Keras's own formula")
def test_a_batch_norm_of_the_mean_is_exactly_beta() -> None:
    layer = lq.layers.BatchNormalization()
    layer.build((None, 1, 1, 256))
    weights = [np.abs(values).astype(np.float32) for values in np.random.default_rng(0).standard_normal((4, 256))]
    layer.set_weights(weights)
    _, beta, mean, _ = weights
    x = tf.Variable(mean.reshape(1, 1, 1, 256))
    with tf.GradientTape() as tape:
        y = layer(x)
    np.testing.assert_array_equal(y.numpy().reshape(-1), beta)
    assert np.all(tape.gradient(y, x).numpy() > 0)
