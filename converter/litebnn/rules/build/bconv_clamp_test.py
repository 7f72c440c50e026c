import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from litebnn.contract import ACTIVATION_RANGES, Activation, BConv2DOptions
from litebnn.graph import constant
from litebnn.rules.build.bconv import bconv_of, with_clamp

quarters = st.sampled_from([-2.0, -1.0, -0.25, 0.0, 0.5, 1.0, 1.0, 3.0])


@given(
    st.integers(1, 9),
    st.lists(st.tuples(quarters, st.sampled_from([-1.0, 0.0, 0.0, 0.0, 20.0])), min_size=1, max_size=6),
    st.sampled_from(list(Activation)),
    st.sampled_from([a for a in Activation if a != Activation.NONE]),
)
def test_a_fused_clamp_is_the_same_for_every_dot_product(
    dot_max: int, channels: list[tuple[float, float]], before: Activation, activation: Activation
) -> None:
    multiplier, bias = (np.array(column, np.float32) for column in zip(*channels, strict=True))
    filters, tensor = np.zeros((len(channels), 1, 1, dot_max), np.bool_), constant("any", multiplier)
    options = BConv2DOptions(channels_in=dot_max, fused_activation_function=before)
    fused = with_clamp(bconv_of(tensor, tensor, "filter", filters, multiplier, bias, options), activation)
    if fused is None:
        return
    after, new_multiplier, new_bias, flip = fused
    for dot in range(-dot_max, dot_max + 1):
        expected = np.clip(np.clip(dot, *ACTIVATION_RANGES[before]) * multiplier + bias, *ACTIVATION_RANGES[activation])
        flipped = np.where(flip, -dot, dot)
        actual = np.clip(flipped, *ACTIVATION_RANGES[after]) * new_multiplier + new_bias
        np.testing.assert_array_equal(actual, expected)
