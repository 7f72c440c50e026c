"""Compares optimizers with larq's, if larq is installed, and tests them in the training of a model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.needs import imported

tf = imported("tensorflow", "keras")
keras = imported("keras", "keras")
lq = imported("litebnn.keras", "keras")

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(256, 16)).astype(np.float32), RNG.normal(size=(256, 2)).astype(np.float32)


def test_bop_flips_as_larq_does() -> None:
    larq = imported("larq", "larq")
    rng = np.random.default_rng(1)
    start = rng.normal(size=(20, 30)).astype(np.float32)
    theirs, ours = tf.Variable(start), keras.Variable(start)
    their_bop, our_bop = larq.optimizers.Bop(threshold=0.02, gamma=0.1), lq.optimizers.Bop(threshold=0.02, gamma=0.1)
    flipped = 0
    for _ in range(20):
        gradient = tf.constant(rng.normal(size=start.shape).astype(np.float32))
        before = ours.numpy()
        their_bop.apply_gradients([(gradient, theirs)])
        our_bop.apply([gradient], [ours])
        np.testing.assert_array_equal(ours.numpy(), theirs.numpy())
        flipped += int(np.sum(ours.numpy() != before))
    assert set(np.unique(ours.numpy())) == {-1, 1}
    assert flipped > 1000


def test_bop_takes_schedules() -> None:
    decay = keras.optimizers.schedules.ExponentialDecay(0.1, 10, 0.5)
    bop = lq.optimizers.Bop(threshold=1e-3, gamma=decay)
    again = lq.optimizers.Bop.from_config(bop.get_config())
    assert float(again.threshold.numpy()) == pytest.approx(1e-3)
    assert again.gamma.get_config() == decay.get_config()
    variable = keras.Variable(np.ones((3,), np.float32))
    again.apply([tf.constant([1.0, -1.0, 0.0])], [variable])
    np.testing.assert_array_equal(variable.numpy(), [-1, 1, 1])
    np.testing.assert_allclose(again.averages[0].numpy(), [0.1, -0.1, 0])


def binary_model() -> Any:
    no_op = {"kernel_quantizer": lq.quantizers.NoOp(precision=1), "use_bias": False}
    model = keras.Sequential(
        [
            keras.Input((16,)),
            lq.layers.QuantDense(32, **no_op),
            keras.layers.BatchNormalization(),
            lq.layers.QuantDense(32, input_quantizer="ste_sign", **no_op),
            keras.layers.BatchNormalization(),
            keras.layers.Dense(2),
        ]
    )
    optimizer = lq.optimizers.CaseOptimizer(
        (lq.optimizers.Bop.is_binary_variable, lq.optimizers.Bop(threshold=1e-6, gamma=1e-2)),
        default_optimizer=keras.optimizers.Adam(0.01),
    )
    model.compile(optimizer, "mse")
    return model


@pytest.mark.deep
def test_a_model_trains_with_two_optimizers_and_is_saved(tmp_path: Path) -> None:
    keras.utils.set_random_seed(0)
    model = binary_model()
    losses = model.fit(X, Y, batch_size=32, epochs=8, verbose=0).history["loss"]
    assert losses[-1] < 0.8 * losses[0]
    for layer in (model.layers[0], model.layers[2]):
        assert set(np.unique(layer.kernel.numpy())) == {-1, 1}
    assert int(model.optimizer.iterations.numpy()) == 64

    model.save(tmp_path / "model.keras")
    again = keras.models.load_model(tmp_path / "model.keras")
    assert len(model.optimizer.variables) > 10
    for found, variable in zip(again.optimizer.variables, model.optimizer.variables, strict=True):
        np.testing.assert_array_equal(found.numpy(), variable.numpy())
    for each in (model, again):
        each.fit(X, Y, batch_size=32, epochs=1, shuffle=False, verbose=0)
    for found, weight in zip(again.get_weights(), model.get_weights(), strict=True):
        np.testing.assert_allclose(found, weight, atol=1e-5)


def test_callbacks_see_the_learning_rate_of_the_default_optimizer() -> None:
    optimizer = binary_model().optimizer
    optimizer.learning_rate = 0.5
    assert float(optimizer.default.learning_rate) == 0.5
    assert float(optimizer.learning_rate) == 0.5
    alone = lq.optimizers.CaseOptimizer((lambda _: True, keras.optimizers.SGD(0.1)))
    with pytest.raises(ValueError, match="no learning rate"):
        alone.learning_rate = 0.5


def test_mistakes_are_told() -> None:
    sgd, variable = keras.optimizers.SGD(0.1, name="sgd"), keras.Variable([1.0])
    with pytest.raises(TypeError, match="predicate 0 is a str, expected a function"):
        lq.optimizers.CaseOptimizer(("binary", sgd))
    with pytest.raises(TypeError, match="optimizer 0 is a str, expected a keras.optimizers.Optimizer"):
        lq.optimizers.CaseOptimizer((callable, "sgd"))
    with pytest.raises(TypeError, match="default_optimizer is a str"):
        lq.optimizers.CaseOptimizer(default_optimizer="sgd")
    both = lq.optimizers.CaseOptimizer((lambda _: True, sgd), (lambda _: True, keras.optimizers.Adam(0.1, name="adam")))
    with pytest.raises(ValueError, match="is claimed by sgd and adam"):
        both.build([variable])
    none = lq.optimizers.CaseOptimizer((lambda _: False, sgd), default_optimizer=keras.optimizers.Adam(0.1))
    with pytest.raises(ValueError, match="sgd claims no variable"):
        none.build([variable])


def test_what_nothing_claims_is_not_trained() -> None:
    one, other = keras.Variable([1.0], name="one"), keras.Variable([1.0], name="other")
    optimizer = lq.optimizers.CaseOptimizer((lambda variable: variable.name == "one", keras.optimizers.SGD(0.5)))
    with pytest.warns(UserWarning, match="no optimizer claims the variable other"):
        optimizer.build([one, other])
    optimizer.apply([tf.constant([1.0]), tf.constant([1.0])], [one, other])
    np.testing.assert_array_equal([one.numpy(), other.numpy()], [[0.5], [1.0]])


@pytest.mark.deep
@pytest.mark.parametrize(("frequency", "expected"), [("epoch", [1.0, 0.5]), ("step", [0.5**3, 0.5**7])])
def test_a_hyperparameter_follows_its_schedule(frequency: str, expected: list[float]) -> None:
    model = binary_model()
    bop = model.optimizer.optimizers[0]
    scheduler = lq.callbacks.HyperparameterScheduler(
        lambda time: 0.5**time, "gamma", bop, update_freq=frequency, log_name="bop_gamma"
    )
    halved = lq.callbacks.HyperparameterScheduler(lambda time, rate: rate / 2, "learning_rate")
    history = model.fit(X, Y, batch_size=64, epochs=2, verbose=0, callbacks=[scheduler, halved]).history
    np.testing.assert_allclose(history["bop_gamma"], expected)
    np.testing.assert_allclose(history["learning_rate"], [0.005, 0.0025])


def test_a_hyperparameter_that_cannot_be_set_is_told() -> None:
    with pytest.raises(ValueError, match='update_freq is "batch"'):
        lq.callbacks.HyperparameterScheduler(lambda time: 1.0, "gamma", update_freq="batch")
    model = binary_model()
    for name in ("gamma", "iteration_count"):
        with pytest.raises(ValueError, match=f'has no "{name}" that can be set'):
            lq.callbacks.HyperparameterScheduler(lambda time: 1.0, name).set_model(model)
