import numpy as np

from litebnn.graph import constant
from litebnn.rewriting.weights import bias_values, binary_weights
from tests.support.float_models import sign_weights


def test_a_channel_that_is_zero_altogether_has_magnitude_zero() -> None:
    weights = sign_weights(np.random.default_rng(0), 4, 1, 1, 32)
    weights[2] = 0
    parts = binary_weights(weights)
    assert not isinstance(parts, str)
    assert parts[1][2] == 0


def test_a_bias_is_one_float_for_each_channel() -> None:
    np.testing.assert_array_equal(bias_values(None, 3), np.zeros(3))
    np.testing.assert_array_equal(bias_values(constant("b", np.ones(3, np.float32)), 3), np.ones(3))
    for other in (np.ones(4, np.float32), np.ones((1, 3), np.float32), np.ones(3, np.int32)):
        assert bias_values(constant("b", other), 3) is None
