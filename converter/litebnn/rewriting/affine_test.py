import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from litebnn.rewriting.affine import LEAST, affine_chain, affine_of, next_level
from tests.support.float_models import FloatModel

finite = st.floats(-(2.0**100), 2.0**100, width=32, allow_subnormal=False)


@given(st.lists(finite, min_size=1, max_size=5))
def test_the_next_level_is_the_nearest_number_that_is_not_subnormal(values: list[float]) -> None:
    array = np.array(values, np.float32)
    for up in (True, False):
        following = next_level(array, up=up)
        assert np.all(following > array if up else following < array)
        assert np.all((following == 0) | (np.abs(following) >= LEAST))
        np.testing.assert_array_equal(next_level(following, up=not up), array)


def test_a_chain_is_one_scale_and_shift() -> None:
    rng = np.random.default_rng(0)
    model = FloatModel()
    x = y = model.input(1, 4)
    scale, shift = rng.choice([0.5, 2.0, -4.0], 4), rng.choice([-1.0, 3.0], 4)
    y = model.elementwise("ADD", model.elementwise("MUL", y, model.const(scale)), model.const(shift))
    y = model.elementwise("NEG", model.elementwise("SUB", model.const(np.full(4, 7)), y))
    y = model.elementwise("DIV", y, model.const(2))
    model.elementwise("SIGN", y)
    chain = affine_chain(model.graph, y)
    assert (len(chain.ops), chain.source, chain.strict) == (5, x, False)
    np.testing.assert_array_equal(chain.scale, scale / 2)
    np.testing.assert_array_equal(chain.shift, (shift - 7) / 2)


def test_an_addend_that_stands_for_a_strict_comparison_is_no_shift() -> None:
    model = FloatModel()
    x = model.input(1, 4)
    y = model.elementwise("SUB", model.elementwise("ADD", x, model.const(np.ones(4))), model.const(LEAST))
    model.elementwise("SIGN", y)
    chain = affine_chain(model.graph, y)
    assert chain.strict
    np.testing.assert_array_equal(chain.shift, np.ones(4))
    assert np.all(chain.lowered(chain.shift) < 1)


def test_ops_that_are_no_affine_of_channels_end_the_chain() -> None:
    model = FloatModel()
    x = model.input(1, 2, 4)
    for other in (
        model.elementwise("ADD", x, model.const(np.ones((1, 2, 4)))),
        model.elementwise("ADD", x, model.const(1), activation="relu"),
        model.elementwise("MUL", x, x),
        model.elementwise("DIV", model.const(1), x),
        model.elementwise("ABS", x),
    ):
        model.elementwise("SIGN", other)
        assert affine_chain(model.graph, other).ops == ()


def test_a_number_of_channels_that_no_model_has_makes_no_arrays() -> None:
    model = FloatModel()
    y = model.elementwise("MUL", model.input(1, 2**31 - 1), model.const(2))
    model.elementwise("SIGN", y)
    assert affine_chain(model.graph, y).ops == ()
    assert affine_of(model.graph.ops[0], -1, left=True) is None
