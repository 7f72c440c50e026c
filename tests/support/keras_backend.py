"""Checks litebnn.keras against NumPy, on the Keras 3 backend that the variable KERAS_BACKEND names.

Usage:

    python -m tests.support.keras_backend FOLDER

The check is a separate program, because a process has only one backend. It raises AssertionError on failure, and writes
`model.keras` into the folder.
"""

import sys
from pathlib import Path
from typing import Any

import keras
import numpy as np

import litebnn.keras as lq

BACKEND = keras.config.backend()
SIGNS = {"input_quantizer": "ste_sign", "kernel_quantizer": "ste_sign", "kernel_constraint": "weight_clip"}
X = np.array([-1e3, -2, -1, -0.75, -0.25, -0.0, 0.0, 0.25, 0.75, 1, 2, 1e3], np.float32)
INSIDE = (np.abs(X) <= 1).astype(np.float32)
SIGN = np.where(X >= 0, 1, -1).astype(np.float32)


def gradient(function: Any, x: Any) -> Any:
    """The gradient, with respect to x, of a weighted sum of the values of function(x). The weights are 1, 2, 3 and so
    on."""
    weights = np.arange(1, len(x) + 1, dtype=np.float32)
    if BACKEND == "jax":
        import jax

        return np.asarray(jax.grad(lambda x: (function(x) * weights).sum())(x))
    if BACKEND == "torch":
        import torch

        tensor = torch.tensor(x, requires_grad=True)
        (function(tensor) * torch.tensor(weights)).sum().backward()
        return tensor.grad.numpy()
    import tensorflow as tf

    tensor = tf.constant(x)
    with tf.GradientTape() as tape:
        tape.watch(tensor)
        total = tf.reduce_sum(function(tensor) * weights)
    return tape.gradient(total, tensor).numpy()


def check_quantizers() -> None:
    swish = 5 * (2 - 5 * X * np.tanh(2.5 * X)) / (1 + np.cosh(np.clip(5 * X, -80, 80)))
    clipped = np.clip(X, 0, 1)
    forms: list[tuple[Any, Any, Any]] = [
        (lq.quantizers.SteSign(), SIGN, INSIDE),
        (lq.quantizers.SteSign(clip_value=None), SIGN, np.ones_like(X)),
        (lq.quantizers.ApproxSign(), SIGN, INSIDE * (2 - 2 * np.abs(X))),
        (lq.quantizers.SwishSign(), SIGN, swish),
        (lq.quantizers.SteHeaviside(), (X > 0).astype(np.float32), INSIDE),
        (lq.quantizers.SteTern(threshold_value=0.5), np.sign(X) * (np.abs(X) > 0.5), INSIDE),
        (lq.quantizers.DoReFa(), np.round(clipped * 3) / 3, (clipped == X).astype(np.float32)),
    ]
    for quantizer, values, slopes in forms:
        np.testing.assert_array_equal(keras.ops.convert_to_numpy(quantizer(X)), values.astype(np.float32))
        expected = slopes * np.arange(1, len(X) + 1)
        np.testing.assert_allclose(gradient(quantizer, X), expected, rtol=1e-5, atol=1e-5, err_msg=quantizer.name)


def check_training(folder: Path) -> None:
    """Checks latent weights and the optimizer Bop, training after loading, and the flip ratio if the backend
    supports it.
    """
    keras.utils.set_random_seed(0)
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(128, 9, 9, 32)).astype(np.float32), rng.normal(size=(128, 2)).astype(np.float32)
    measured = [] if BACKEND == "jax" else ["flip_ratio"]
    with lq.context.metrics_scope(measured):
        conv = lq.layers.QuantConv2D(32, 3, strides=2, padding="same", pad_values=1.0, **SIGNS)
    model = keras.Sequential(
        [
            keras.Input((9, 9, 32)),
            conv,
            keras.layers.BatchNormalization(),
            keras.layers.GlobalAveragePooling2D(),
            lq.layers.QuantDense(
                2, input_quantizer="swish_sign", kernel_quantizer=lq.quantizers.NoOp(precision=1), use_bias=False
            ),
            keras.layers.BatchNormalization(),
        ]
    )
    bop = lq.optimizers.Bop(threshold=1e-6, gamma=1e-2)
    model.compile(
        lq.optimizers.CaseOptimizer(
            (lq.optimizers.Bop.is_binary_variable, bop), default_optimizer=keras.optimizers.Adam(0.01)
        ),
        "mse",
    )
    schedule = lq.callbacks.HyperparameterScheduler(lambda step: 0.01 * 0.9**step, "gamma", bop, update_freq="step")
    history = model.fit(x, y, batch_size=32, epochs=3, verbose=0, callbacks=[schedule]).history
    assert history["loss"][-1] < history["loss"][0]
    np.testing.assert_allclose(history["gamma"], [0.01 * 0.9**step for step in (3, 7, 11)], rtol=1e-5)
    if measured:
        assert 0 < history[f"flip_ratio/{conv.kernel_quantizer.name}"][0] < 1
    latent = model.get_weights()
    assert set(np.unique(latent[6])) == {-1, 1}
    with lq.context.quantized_scope(True):
        np.testing.assert_array_equal(model.get_weights()[0], np.where(latent[0] >= 0, 1, -1))

    model.save(folder / "model.keras")
    again = keras.models.load_model(folder / "model.keras")
    np.testing.assert_array_equal(again.predict(x, verbose=0), model.predict(x, verbose=0))
    again.fit(x, y, batch_size=32, verbose=0)


def main() -> None:
    check_quantizers()
    check_training(Path(sys.argv[1]))


if __name__ == "__main__":
    main()
