import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from litebnn.analysis.signs import find_sign, find_two_values
from litebnn.analysis.values import values_of
from litebnn.graph import Tensor
from tests.support.float_models import FloatModel
from tests.support.sign_spellings import SPELLINGS, as_number, compared, rounded, two_booleans


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_a_sign_is_found_however_it_is_written(spelling: str) -> None:
    model = FloatModel()
    x = model.input(1, 4)
    sign = find_sign(model.graph, SPELLINGS[spelling](model, x))
    assert sign is not None
    assert (sign.x, sign.falls, sign.level.tolist()) == (x, False, [0.0])


@pytest.mark.parametrize("spelling", SPELLINGS)
@pytest.mark.parametrize("summed", ["bias", "batch norm", "two inputs"])
def test_a_sign_of_a_sum_is_found_however_it_is_written(spelling: str, summed: str) -> None:
    model = FloatModel()
    x, other = model.input(1, 4), model.input(1, 4) if summed == "two inputs" else model.const(0.5)
    if summed == "batch norm":
        x = model.elementwise("MUL", x, model.const(2))
    total = model.elementwise("SUB", x, other)
    sign = find_sign(model.graph, SPELLINGS[spelling](model, total))
    assert sign is not None
    assert (sign.x, sign.falls, sign.level.tolist()) == (total, False, [0.0])


@pytest.mark.parametrize("spelling", SPELLINGS)
@pytest.mark.parametrize("made", ["scaled", "shifted", "batch norm", "picked"])
def test_a_sign_of_signs_that_each_channel_scales_or_shifts_is_found_however_it_is_written(
    spelling: str, made: str
) -> None:
    model = FloatModel()
    x = model.input(1, 4)
    scale = model.const([-1, 0.5, 0.25, 2])
    if made == "picked":
        condition = compared(model, x, "GREATER_EQUAL")
        scaled = model.op("SELECT_V2", [condition, scale, model.const([1, 0.5, -2, 1])], x.dims)
    else:
        sign = model.sign(x)
        scaled = sign if made == "shifted" else model.elementwise("MUL", sign, scale)
    if made in ("shifted", "batch norm"):
        scaled = model.elementwise("ADD", scaled, model.const([0.25, -0.5, 1, 4]))
    found = find_sign(model.graph, SPELLINGS[spelling](model, scaled))
    assert found is not None
    assert (found.x, found.falls, found.level.tolist()) == (scaled, False, [0.0])


def test_a_rounded_line_changes_where_the_runtime_rounds_it_up() -> None:
    model = FloatModel()
    x = model.input(1, 4)
    sign = find_sign(model.graph, rounded(model, x))
    assert sign is not None
    [level] = sign.level
    assert (sign.x, sign.falls) == (x, False)

    def value(number: np.float32) -> float:
        half = (number + np.float32(1)) * np.float32(0.5)
        return float(2 * np.rint(np.clip(half, np.float32(0), np.float32(1))) - 1)

    assert value(level) == 1.0
    assert value(np.nextafter(level, np.float32(-1))) == -1.0


def test_rounding_that_takes_many_levels_is_no_sign() -> None:
    model = FloatModel()
    assert find_sign(model.graph, model.elementwise("ROUND", model.input(1, 4))) is None


def test_a_term_that_does_not_cancel_leaves_no_sign() -> None:
    model = FloatModel()
    x = model.input(1, 4)
    sign, clip, other = two_booleans(model, x), model.elementwise("RELU_N1_TO_1", x), model.elementwise("TANH", x)
    assert find_sign(model.graph, model.elementwise("ADD", model.elementwise("SUB", sign, clip), other)) is None
    assert find_sign(model.graph, model.elementwise("SUB", model.elementwise("SUB", sign, clip), clip)) is None
    clamped = model.elementwise("SUB", sign, clip, activation="relu")
    assert find_sign(model.graph, model.elementwise("ADD", clamped, clip)) is None


def test_signs_of_different_tensors_are_none_together() -> None:
    model = FloatModel()
    left, right = (as_number(model, compared(model, model.input(1, 4), "GREATER_EQUAL")) for _ in range(2))
    assert find_sign(model.graph, model.elementwise("SUB", left, right)) is None


def test_sign_takes_three_values_unless_zero_does_not_matter() -> None:
    model = FloatModel()
    x = model.input(1, 4)
    lone = model.elementwise("SIGN", x)
    found = values_of(model.graph, lone)
    assert found.edges.tolist() == [0.0, np.finfo(np.float32).tiny]
    assert found.values.tolist() == [-1.0, 0.0, 1.0]
    assert find_sign(model.graph, lone) is None
    assert find_sign(model.graph, lone, assume_nonzero=True) is not None


def test_a_scaled_straight_through_sign_takes_two_values() -> None:
    model = FloatModel()
    x = model.input(1, 4)
    condition = compared(model, x, "GREATER_EQUAL")
    sign = model.op("SELECT_V2", [condition, model.const(1), model.const(-1)], x.dims)
    scaled = model.elementwise("MUL", sign, model.const(0.25))
    clip = model.elementwise("RELU_N1_TO_1", x)
    values = find_two_values(model.graph, model.elementwise("ADD", model.elementwise("SUB", scaled, clip), clip))
    assert values is not None
    assert (values.x, *values.values) == (condition, -0.25, 0.25)


def test_a_threshold_of_any_tensor_decides_between_two_values() -> None:
    """The form (sign(x) + |sign(x)|) / 2 has the values 0 and 1, although x is neither a boolean nor a sign."""
    model = FloatModel()
    sign = model.elementwise("SIGN", model.input(1, 4))
    total = model.elementwise("ADD", sign, model.elementwise("ABS", sign))
    half = model.elementwise("MUL", total, model.const(0.5))
    values = find_two_values(model.graph, half)
    assert values is not None
    assert values.values.tolist() == [0.0, 1.0]


_UNARY = ("SIGN", "ABS", "NEG", "RELU", "RELU_N1_TO_1", "TANH")
_BINARY = ("ADD", "SUB", "MUL", "MAXIMUM", "MINIMUM")
_COMPARISONS = ("GREATER_EQUAL", "GREATER", "LESS_EQUAL", "LESS", "EQUAL", "NOT_EQUAL")
_NUMBERS = (-1.0, -0.5, 0.0, 0.25, 1.0, 2.0)


def _value(name: str, *operands: np.ndarray) -> np.ndarray:
    table = {
        "SIGN": np.sign, "ABS": np.abs, "NEG": np.negative, "TANH": np.tanh, "RELU": lambda v: np.maximum(v, 0),
        "RELU_N1_TO_1": lambda v: np.clip(v, -1, 1), "ADD": np.add, "SUB": np.subtract, "MUL": np.multiply,
        "MAXIMUM": np.maximum, "MINIMUM": np.minimum, "GREATER_EQUAL": np.greater_equal, "GREATER": np.greater,
        "LESS_EQUAL": np.less_equal, "LESS": np.less, "EQUAL": np.equal, "NOT_EQUAL": np.not_equal,
    }  # fmt: skip
    return np.asarray(table[name](*operands), np.float64)


@given(st.data())
def test_what_is_known_of_random_expressions_is_true(data: st.DataObject) -> None:
    model = FloatModel()
    x = model.input(1, 4)
    at = np.array([-3.0, -1.0, -0.75, -0.5, -0.25, 0.0, 0.25, 0.5, 1.0, 1.5, 2.0, 3.0])
    made: list[tuple[Tensor, np.ndarray]] = [(x, at)]
    for _ in range(data.draw(st.integers(1, 8))):
        kind = data.draw(st.sampled_from(("unary", "binary", "number", "comparison")))
        tensor, values = data.draw(st.sampled_from(made))
        number = data.draw(st.sampled_from(_NUMBERS))
        if kind == "unary":
            name = data.draw(st.sampled_from(_UNARY))
            made.append((model.elementwise(name, tensor), _value(name, values)))
        elif kind == "comparison":
            name = data.draw(st.sampled_from(_COMPARISONS))
            made.append((as_number(model, compared(model, tensor, name, number)), _value(name, values, number)))
        else:
            name = data.draw(st.sampled_from(_BINARY))
            constant = (model.const(number), np.full_like(at, number))
            other = data.draw(st.sampled_from(made)) if kind == "binary" else constant
            made.append((model.elementwise(name, tensor, other[0]), _value(name, values, other[1])))
    tensor, expected = made[-1]
    found = values_of(model.graph, tensor)
    if found.is_known and found.x in (x, None):
        numbers = found.values[np.searchsorted(found.edges, at, side="right")]
        np.testing.assert_allclose(numbers, expected, atol=1e-12)
