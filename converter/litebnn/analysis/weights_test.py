import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from litebnn.analysis.weights import bias_values, binary_weights, ternary_weights, why_not_binary
from litebnn.graph import constant
from tests.support.float_models import FloatModel, sign_weights


def test_a_channel_that_is_zero_altogether_has_magnitude_zero() -> None:
    weights = sign_weights(np.random.default_rng(0), 4, 1, 1, 32)
    weights[2] = 0
    parts = binary_weights(weights)
    assert not isinstance(parts, str)
    assert parts[1][2] == 0


def test_a_bias_is_one_float_for_each_channel() -> None:
    np.testing.assert_array_equal(bias_values(None, 3), np.zeros(3))
    for shape in ((3,), (1, 1, 1, 3)):
        np.testing.assert_array_equal(bias_values(constant("b", np.ones(shape, np.float32)), 3), np.ones(3))
    for other in (np.ones(4, np.float32), np.ones((1, 3), np.float32), np.ones(3, np.int32)):
        assert bias_values(constant("b", other), 3) is None


def test_ternary_weights_have_one_magnitude_in_each_channel() -> None:
    alpha = np.array([[0.1], [3e-5], [1.0]], np.float32)
    weights = np.array([[1, 0, -1, 1], [0, -1, -1, 0], [0, 0, 0, 0]], np.float32) * alpha
    parts = ternary_weights(weights)
    assert parts is not None
    np.testing.assert_array_equal(parts[0] * parts[1][:, None], weights)
    for odd in (0.05, np.inf, np.nan):
        weights[0, 1] = odd
        assert ternary_weights(weights) is None
    assert ternary_weights(np.zeros((3, 0), np.float32)) is None


@pytest.mark.parametrize("shape", [(), (1, 4, 4, 0), (1, 4, 4, 48)])
def test_a_filter_that_its_input_does_not_fit_is_named(shape: tuple[int, ...]) -> None:
    model = FloatModel()
    x, weights = model.input(1, 4, 4, 32), np.ones((8, 1, 1, 32), np.float32)
    convolution = model.graph.producer(model.conv(x, weights))
    assert convolution is not None
    assert why_not_binary(convolution, weights) is None
    x.shape = shape
    assert "into groups" in str(why_not_binary(convolution, weights))


def test_rows_of_an_input_whose_size_is_not_known_are_named() -> None:
    model = FloatModel()
    x, weights = model.input(1, 32), np.ones((8, 32), np.float32)
    layer = model.graph.producer(model.dense(x, weights))
    assert layer is not None
    assert why_not_binary(layer, weights) is None
    x.shape = ()
    assert why_not_binary(layer, weights) == "it reads rows of 32 across an input of []"


@pytest.mark.parametrize(("alpha", "binary"), [(0.5, True), (0.01, True), (2e-4, True), (1e-5, False)])
def test_straight_through_rounding_of_small_weights_is_overlooked(alpha: float, binary: bool) -> None:
    rng = np.random.default_rng(0)
    latent = rng.uniform(-1, 1, (4, 3, 3, 32)).astype(np.float32)
    scaled = np.float32(alpha) * np.sign(latent)
    parts = binary_weights((scaled - latent) + latent)
    assert isinstance(parts, tuple) == binary
    if isinstance(parts, tuple):
        np.testing.assert_array_equal(parts[0], latent < 0)
        np.testing.assert_allclose(parts[1], alpha, rtol=1e-4 if alpha < 1e-3 else 1e-5)


@given(st.integers(1, 9), st.integers(0, 2**16), st.sampled_from([(1, 1, 32), (3, 3, 32), (900,)]))
def test_few_zeros_are_taken_for_plus_one_and_counted(zeros: int, seed: int, shape: tuple[int, ...]) -> None:
    rng = np.random.default_rng(seed)
    weights = sign_weights(rng, 4, *shape)
    weights[1] = 0  # a channel of zeros alone stays one
    taken = weights.copy()
    places = rng.choice(np.flatnonzero(weights), zeros, replace=False)
    taken.reshape(-1)[places] = rng.choice([0.0, -0.0], zeros)
    verb = "is" if zeros == 1 else "are"
    reason = binary_weights(taken)
    assert str(reason).startswith(f"{zeros} of its {weights.size:,} weights {verb} 0")
    found = binary_weights(taken, assume_nonzero=True)
    if zeros > max(1, weights.size / 100):
        assert found == reason == f"{zeros} of its {weights.size:,} weights are 0 (ternary or pruned)"
        return
    assert "; with assume_nonzero" in str(reason)
    assert not isinstance(found, str)
    minus_one, alpha, count = found
    assert count == zeros
    np.testing.assert_array_equal(alpha, np.abs(weights).reshape(4, -1).max(axis=1))
    weights.reshape(-1)[places] = np.abs(weights.reshape(-1)[places])
    np.testing.assert_array_equal(minus_one, weights < 0)


def test_zeros_do_not_lower_the_mean_of_rounded_magnitudes() -> None:
    latent = np.random.default_rng(0).uniform(-1, 1, (4, 3, 3, 32)).astype(np.float32)
    latent[2, 1, 1, 5] = 0
    parts = binary_weights((np.float32(2e-4) * np.sign(latent) - latent) + latent, assume_nonzero=True)
    assert not isinstance(parts, str)
    np.testing.assert_allclose(parts[1], 2e-4, rtol=1e-4)
    assert parts[2] == 1


def test_large_weights_are_not_copied() -> None:
    weights = sign_weights(np.random.default_rng(0), 64, 3, 3, 8192)
    tracemalloc.start()
    parts = binary_weights(weights)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert not isinstance(parts, str)
    assert most < weights.nbytes
