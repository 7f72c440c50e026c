import numpy as np
import pytest

from litebnn.rewriting.int8 import int8_constant, parameters
from litebnn.rewriting.signs import find_sign
from tests.support.float_models import FloatModel


@pytest.mark.parametrize(
    ("form", "comparison"),
    [
        ("sign_add_sign", "GREATER_EQUAL"),
        ("sign_add_sign_down", "GREATER"),
        ("where_ge", "GREATER_EQUAL"),
        ("where_gt", "GREATER"),
        ("where_mirrored", "LESS_EQUAL"),
        ("where_swapped", "LESS"),
        ("where_not", "LESS"),
        ("where_zero", "GREATER_EQUAL"),
        ("scaled_cast", "GREATER_EQUAL"),
    ],
)
def test_a_form_is_a_comparison(form: str, comparison: str) -> None:
    model = FloatModel()
    x = model.input(1, 4)
    sign = find_sign(model.graph, model.sign(x, form))
    assert sign is not None
    assert (sign.x, sign.comparison, sign.threshold) == (x, comparison, 0.0)


@pytest.mark.parametrize(("count", "comparison"), [(2, "GREATER_EQUAL"), (5001, "LESS")])
def test_any_number_of_nots_is_one_or_none(count: int, comparison: str) -> None:
    model = FloatModel()
    x = model.input(1, 4)
    condition = model.elementwise("GREATER_EQUAL", x, model.const(0.5), type="BOOL")
    for _ in range(count):
        condition = model.op("LOGICAL_NOT", [condition], x.dims, type="BOOL")
    sign = find_sign(model.graph, model.op("SELECT_V2", [condition, model.const(1), model.const(-1)], x.dims))
    assert sign is not None
    assert (sign.x, sign.comparison, sign.threshold) == (x, comparison, 0.5)


@pytest.mark.parametrize(("level", "is_x"), [(0.0, True), (0.25, False)])
def test_an_int8_value_is_compared_with_its_zero_point_only(level: float, is_x: bool) -> None:
    model = FloatModel()
    x = model.input(1, 4, type="INT8")
    x.quantization = parameters(0.25, 3)
    threshold = int8_constant("level", np.full(1, level, np.float32), 0.25, 3)
    condition = model.elementwise("GREATER_EQUAL", x, threshold, type="BOOL")
    for values in ((1, -1), (-1, 1)):
        selected = model.op("SELECT_V2", [condition, *(model.const(v) for v in values)], x.dims)
        sign = find_sign(model.graph, selected)
        assert sign is not None
        assert sign.x is (x if is_x and values[0] == 1 else condition)
        assert sign.truth == (values[0] == 1)


def test_an_int8_value_of_a_grid_too_fine_to_compare_is_no_sign_itself() -> None:
    model = FloatModel()
    x = model.input(1, 4, type="INT8")
    x.quantization = parameters(2.0**-10, 3)
    zero = int8_constant("zero", np.zeros(1, np.float32), 2.0**-10, 3)
    condition = model.elementwise("GREATER_EQUAL", x, zero, type="BOOL")
    sign = find_sign(model.graph, model.op("SELECT_V2", [condition, model.const(1), model.const(-1)], x.dims))
    assert sign is not None
    assert sign.x is condition


@pytest.mark.parametrize(("amount", "comparison"), [(0.1, "GREATER_EQUAL"), (-0.1, "GREATER")])
def test_what_a_grid_says_is_never_negative_need_not_have_a_sign_below_zero(amount: float, comparison: str) -> None:
    """The grid of the sum holds 0 and 1.1 only, so that it does not tell -0.9 from 0."""
    model = FloatModel()
    levels = model.input(1, 4, type="INT8")
    levels.quantization = parameters(0.5, -128)
    x = model.op("DEQUANTIZE", [levels], levels.dims)
    total = model.elementwise("ADD", model.elementwise("SIGN", x), model.const(amount))
    rounded = model.op("QUANTIZE", [total], x.dims, type="INT8")
    rounded.quantization = parameters(0.0125, -128 if amount > 0 else -120)
    sign = find_sign(model.graph, model.elementwise("SIGN", model.op("DEQUANTIZE", [rounded], x.dims)))
    assert sign is not None
    assert (sign.x, sign.comparison) == (x, comparison)
