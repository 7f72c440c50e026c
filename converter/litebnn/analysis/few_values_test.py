import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from litebnn.analysis.affine import next_level
from litebnn.analysis.few_values import SignSum, few_levels, few_values, find_levels, has_zero
from litebnn.analysis.transfers import Values
from litebnn.graph import Array, Op, Tensor
from tests.support.float_models import FloatModel
from tests.support.level_spellings import LEVELS, dorefa, rounded

F = np.float32


def levels_of(total: SignSum, values: Array) -> Array:
    """Returns the numbers that a sum of signs gives for the inputs `values` [n] of one channel."""
    signs = np.where((values[:, None] >= total.thresholds) == total.rising, 1, -1)
    return np.asarray(total.middle + signs @ total.scales)


def sum_in(model: FloatModel, tensor: Tensor) -> tuple[Values, SignSum]:
    """Returns the few values that a tensor takes, and the sum of signs that represents them in layers that pad with
    zeros."""
    found = find_levels(model.graph, tensor)
    assert found is not None
    total = few_levels(found)
    assert total is not None
    return found, total


def around(thresholds: Array) -> Array:
    """Returns test inputs: the thresholds, the floats next to them, and numbers of many sizes. Subnormal numbers are
    left out, because CPUs may flush them to zero."""
    near = [next_level(thresholds, up=up) for up in (False, True)]
    return np.concatenate([thresholds, *near, np.linspace(-8, 8, 257, dtype=F), np.array([-1e30, 1e30], F)])


def test_dorefa_is_the_sum_of_three_signs() -> None:
    model = FloatModel()
    x = model.input(1, 4)
    found, total = sum_in(model, dorefa(model, x))
    assert (found.x, has_zero(found.values), total.middle) == (x, True, 1.5)
    assert total.rising.tolist() == [False] * 3
    assert total.scales.tolist() == [-0.5] * 3
    # The function rint rounds halves to even numbers: 0.5 becomes 0, 1.5 and 2.5 become 2.
    numbers = around(found.edges)
    expected = np.rint(np.clip(numbers, F(0), F(1)) * F(3))
    rising = few_levels(found, for_zeros=False)
    assert rising is not None
    assert rising.rising.tolist() == [True] * 3
    for form in (total, rising):
        np.testing.assert_array_equal(levels_of(form, numbers), expected)


@pytest.mark.parametrize("spelling", LEVELS)
def test_levels_are_found_however_they_are_written(spelling: str) -> None:
    model = FloatModel()
    x = model.input(1, 4)
    found, total = sum_in(model, LEVELS[spelling](model, x))
    assert found.x is x
    assert len(total.thresholds) == (2 if "ternary" in spelling else 3)
    # If an element is zero, all signs whose sum represents it are +1. Therefore padding the signs with +1 has the same
    # effect as padding the tensor with zeros.
    zeros = [n for n in around(found.edges) if abs(levels_of(total, np.array([n], F))[0]) < 1e-6]
    assert has_zero(found.values)
    assert np.all((np.array(zeros, F)[:, None] >= total.thresholds) == total.rising)


def test_a_division_that_is_rounded_leaves_levels_that_are_even_but_for_it() -> None:
    model = FloatModel()
    third = model.elementwise("MUL", dorefa(model, model.input(1, 4)), model.const(F(1) / F(3)))
    _, total = sum_in(model, third)
    np.testing.assert_allclose(np.abs(total.scales), 1 / 6, rtol=1e-7)


def test_what_takes_other_values_is_no_sum_of_few_signs() -> None:
    model = FloatModel()
    x = model.input(1, 4)
    clipped = model.elementwise("RELU_0_TO_1", x)
    last = model.elementwise("SIGN", model.elementwise("SUB", dorefa(model, x), model.const(2.5)))
    for other in (
        model.elementwise("SIGN", x),  # takes zero at a single number
        model.sign(x),
        clipped,
        rounded(model, clipped, 4.0),
        model.elementwise("ROUND", x),
        model.elementwise("EXP", rounded(model, clipped)),  # steps of different heights
        model.elementwise("ADD", dorefa(model, x), model.elementwise("MUL", last, model.const(0.001))),  # a higher step
        model.elementwise("ADD", dorefa(model, x), model.const(np.zeros((3, 4)))),  # has more elements than x
        model.elementwise("ADD", dorefa(model, x), x),
        model.elementwise("MUL", dorefa(model, x), model.const([1, 2, 3, 4])),
    ):
        assert find_levels(model.graph, other) is None


def test_levels_of_a_reciprocal_are_not_those_of_what_is_divided_by() -> None:
    model = FloatModel()
    reciprocal = model.elementwise("DIV", model.const(1), model.input(1, 4))
    found = find_levels(model.graph, model.elementwise("FLOOR", model.elementwise("RELU_N1_TO_1", reciprocal)))
    assert found is not None
    assert found.x is reciprocal


def test_a_step_of_twice_the_height_is_two_signs() -> None:
    model = FloatModel()
    level = dorefa(model, model.input(1, 4))
    found, _ = sum_in(model, model.elementwise("MAXIMUM", level, model.const(1)))
    assert not has_zero(found.values)
    twice = model.elementwise("RELU", model.elementwise("SUB", rounded(model, level, 0.75), model.const(0)))
    _, total = sum_in(model, twice)  # 0, 1, 2 and 2
    assert len(total.thresholds) == 2
    ends = model.elementwise("MUL", model.elementwise("SIGN", model.elementwise("SUB", level, model.const(1))), level)
    _, total = sum_in(model, ends)  # 0, 0, 2 and 3
    assert total.thresholds[0] == total.thresholds[1] < total.thresholds[2]


def test_levels_that_are_moved_are_those_of_what_is_moved() -> None:
    model = FloatModel()
    x = model.input(1, 4, 4, 32)
    level = dorefa(model, x)
    pooled = model.max_pool(level, 2, 2)
    flat = model.reshape(pooled, 1, 128)
    found = few_values(model.graph, flat)
    assert found is not None
    assert found.x is x
    assert [op.output for op in found.ops] == [pooled, flat]
    part = model.op("SPLIT_V", [level, model.const([16, 16], np.int32), model.const(3, np.int32)], (1, 4, 4, 16))
    assert few_values(model.graph, part) is not None
    whole = model.graph.ops[-1]
    model.graph.replace(whole, Op(whole.code, whole.inputs, [part, Tensor("other", "FLOAT32", part.shape)]))
    assert few_values(model.graph, part) is None
    falling = model.max_pool(model.elementwise("NEG", level), 2, 2)
    assert few_values(model.graph, falling) is None
    assert few_values(model.graph, model.op("AVERAGE_POOL_2D", [level], (1, 2, 2, 32), table="")) is None


@given(st.data())
def test_the_levels_of_random_chains_are_what_numpy_makes_of_them(data: st.DataObject) -> None:
    model = FloatModel()
    x: Tensor = model.input(1, 1)
    numbers = around(np.arange(-64, 64, dtype=F) / F(6))
    tensor, values = x, numbers
    unary = {
        "RELU": lambda v: np.maximum(v, F(0)), "RELU6": lambda v: np.clip(v, F(0), F(6)), "NEG": np.negative,
        "RELU_N1_TO_1": lambda v: np.clip(v, F(-1), F(1)), "RELU_0_TO_1": lambda v: np.clip(v, F(0), F(1)),
        "ROUND": np.rint, "FLOOR": np.floor, "CEIL": np.ceil, "SIGN": np.sign,
    }  # fmt: skip
    binary = {"ADD": np.add, "SUB": np.subtract, "MUL": np.multiply, "DIV": np.divide, "MAXIMUM": np.maximum,
              "MINIMUM": np.minimum}  # fmt: skip
    for name in data.draw(st.lists(st.sampled_from([*unary, *binary]), min_size=1, max_size=6)):
        if name in unary:
            tensor, values = model.elementwise(name, tensor), unary[name](values)
            continue
        number = F(data.draw(st.sampled_from([-2.0, -1.0, 0.1, 0.5, 1.0, 1.5, 3.0])))
        if name not in ("DIV", "MUL") and data.draw(st.integers(0, 5)) == 0:
            values = binary[name](values, numbers)
            tensor = model.elementwise(name, tensor, x)
        elif name != "DIV" and data.draw(st.booleans()):
            tensor, values = model.elementwise(name, model.const(number), tensor), binary[name](number, values)
        else:
            tensor, values = model.elementwise(name, tensor, model.const(number)), binary[name](values, number)
    found = find_levels(model.graph, tensor)
    if found is not None and found.x is x:
        largest = max(1.0, float(np.abs(values).max()))
        for form in filter(None, (few_levels(found, for_zeros=zeros) for zeros in (True, False))):
            np.testing.assert_allclose(levels_of(form, numbers), values, rtol=0, atol=2e-6 * largest)
