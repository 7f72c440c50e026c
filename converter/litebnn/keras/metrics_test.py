from __future__ import annotations

import numpy as np
import pytest

from tests.needs import imported

keras = imported("keras", "keras")
lq = imported("litebnn.keras", "keras")


def test_the_flip_ratio_is_the_mean_of_what_changed() -> None:
    metric = lq.metrics.FlipRatio()
    assert float(metric.result()) == 0
    for values in ([1, 1], [2, 2], [1, 2]):
        metric.update_state(np.array(values))
    assert float(metric.result()) == 0.75
    metric.reset_state()
    assert float(metric.result()) == 0
    for values in ([1, 2], [1, 2], [1, 1]):
        metric.update_state(np.array(values))
    assert float(metric.result()) == 0.25
    again = lq.metrics.FlipRatio.from_config(metric.get_config())
    assert (again.name, again.values_dtype, again.dtype) == ("flip_ratio", "int8", "float32")


def test_training_reports_the_flip_ratio_of_each_kernel() -> None:
    keras.utils.set_random_seed(0)
    signs = {"input_quantizer": "ste_sign", "kernel_quantizer": "ste_sign", "kernel_constraint": "weight_clip"}
    with lq.context.metrics_scope(["flip_ratio"]) as metrics:
        assert metrics == lq.context.get_training_metrics() == {"flip_ratio"}
        measured = lq.layers.QuantDense(8, **signs)
    own = lq.quantizers.SteSign(metrics=["flip_ratio"], name="own")
    layers = [measured, lq.layers.QuantDense(8, **signs), lq.layers.QuantDense(2, kernel_quantizer=own)]
    model = keras.Sequential([keras.Input((16,)), *layers])
    model.compile(keras.optimizers.SGD(0.01), "mse")
    x, y = np.random.default_rng(0).normal(size=(2, 64, 16)).astype(np.float32)
    history = model.fit(x, y[:, :2], batch_size=8, epochs=2, verbose=0).history
    names = {name for name in history if name.startswith("flip_ratio")}
    assert names == {f"flip_ratio/{measured.kernel_quantizer.name}", "flip_ratio/own"}
    assert all(0 < ratio < 1 for name in names for ratio in history[name])
    counts = [float(layer.kernel_quantizer.flip_ratio.count) for layer in (measured, layers[2])]
    model.predict(x, verbose=0)
    assert counts == [8, 8] == [float(layer.kernel_quantizer.flip_ratio.count) for layer in (measured, layers[2])]


def test_unknown_metrics_are_told() -> None:
    with (
        pytest.raises(ValueError, match='unknown training metric "flips", expected one of flip_ratio'),
        lq.context.metrics_scope(["flips"]),
    ):
        pass
    with pytest.raises(ValueError, match='unknown training metric "flips"'):
        lq.quantizers.SteSign(metrics=["flips"])
    assert lq.context.get_training_metrics() == set()
