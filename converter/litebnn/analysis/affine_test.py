import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from litebnn.analysis.affine import affine_of, next_level
from tests.support.float_models import FloatModel

finite = st.floats(-(2.0**100), 2.0**100, width=32, allow_subnormal=False)


@given(st.lists(finite, min_size=1, max_size=5))
def test_the_next_level_is_the_nearest_number_that_is_not_subnormal(values: list[float]) -> None:
    array = np.array(values, np.float32)
    for up in (True, False):
        following = next_level(array, up=up)
        assert np.all(following > array if up else following < array)
        assert np.all((following == 0) | (np.abs(following) >= np.finfo(np.float32).tiny))
        np.testing.assert_array_equal(next_level(following, up=not up), array)


def test_a_number_of_channels_that_no_model_has_makes_no_arrays() -> None:
    model = FloatModel()
    y = model.elementwise("MUL", model.input(1, 2**31 - 1), model.const(2))
    assert affine_of(model.graph.ops[0], y.channels, left=True) is None
    assert affine_of(model.graph.ops[0], -1, left=True) is None
