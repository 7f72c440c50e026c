import numpy as np
import pytest

from litebnn.analysis.quantization import parameters
from litebnn.analysis.signs import find_sign
from litebnn.rules.build.int8 import int8_constant
from tests.support.float_models import FloatModel
from tests.support.quantized_models import Int8Model

LEAST = float(np.finfo(np.float32).tiny)  # the least positive normal number


@pytest.mark.parametrize(
    ("form", "falls", "level"),
    [
        ("sign_add_sign", False, 0.0),
        ("sign_add_sign_down", False, LEAST),
        ("where_ge", False, 0.0),
        ("where_gt", False, LEAST),
        ("where_mirrored", True, LEAST),
        ("where_swapped", True, 0.0),
        ("where_not", True, 0.0),
        ("where_zero", False, 0.0),
        ("scaled_cast", False, 0.0),
    ],
)
def test_a_form_is_a_comparison(form: str, falls: bool, level: float) -> None:
    model = FloatModel()
    x = model.input(1, 4)
    sign = find_sign(model.graph, model.sign(x, form))
    assert sign is not None
    assert (sign.x, sign.falls, sign.level.tolist()) == (x, falls, [level])


@pytest.mark.parametrize(("count", "falls"), [(2, False), (5001, True)])
def test_any_number_of_nots_is_one_or_none(count: int, falls: bool) -> None:
    model = FloatModel()
    x = model.input(1, 4)
    condition = model.elementwise("GREATER_EQUAL", x, model.const(0.5), type="BOOL")
    for _ in range(count):
        condition = model.op("LOGICAL_NOT", [condition], x.dims, type="BOOL")
    sign = find_sign(model.graph, model.op("SELECT_V2", [condition, model.const(1), model.const(-1)], x.dims))
    assert sign is not None
    assert (sign.x, sign.falls, sign.level.tolist()) == (x, falls, [0.5])


@pytest.mark.parametrize("level", [0.0, 0.25, -3.5])
def test_an_int8_value_is_compared_with_a_level(level: float) -> None:
    model = FloatModel()
    x = model.input(1, 4, type="INT8")
    x.quantization = parameters(0.25, 3)
    threshold = int8_constant("level", np.full(1, level, np.float32), 0.25, 3)
    condition = model.elementwise("GREATER_EQUAL", x, threshold, type="BOOL")
    for values in ((1, -1), (-1, 1)):
        selected = model.op("SELECT_V2", [condition, *(model.const(v) for v in values)], x.dims)
        sign = find_sign(model.graph, selected)
        assert sign is not None
        assert (sign.x, sign.falls, sign.level.tolist()) == (x, values[0] == -1, [level])


def test_a_sign_of_levels_with_another_level_in_the_place_of_zero() -> None:
    model = Int8Model()
    x = model.input8((1 / 512, 3), 1, 4)  # 1 is not a level, but the highest level is positive
    model.sign8(x, "zeros_replaced", (1 / 127, 0))
    sign = find_sign(model.graph, model.graph.ops[-1].input(0))
    assert sign is not None
    assert (sign.x, sign.falls, sign.level.tolist()) == (x, False, [0.0])


@pytest.mark.parametrize("filling", ["BROADCAST_TO", "FILL"])
def test_numbers_that_are_as_large_as_the_batch(filling: str) -> None:
    model = FloatModel()
    x = model.input(1, 4, signature=(-1, 4))
    shape = model.op("SHAPE", [x], (2,), type="INT32")
    one, minus = (
        model.op(filling, [model.const(v), shape] if filling == "BROADCAST_TO" else [shape, model.const(v)], x.dims)
        for v in (1, -1)
    )
    condition = model.elementwise("GREATER_EQUAL", x, model.const(0.5), type="BOOL")
    sign = find_sign(model.graph, model.op("SELECT_V2", [condition, one, minus], x.dims))
    assert sign is not None
    assert (sign.x, sign.falls, sign.level.tolist()) == (x, False, [0.5])


def test_an_int8_value_of_a_fine_grid_is_compared_as_coarsely_as_the_runtime_does() -> None:
    model = FloatModel()
    x = model.input(1, 4, type="INT8")
    x.quantization = parameters(2.0**-10, 3)
    zero = int8_constant("zero", np.zeros(1, np.float32), 2.0**-10, 3)
    condition = model.elementwise("GREATER_EQUAL", x, zero, type="BOOL")
    sign = find_sign(model.graph, model.op("SELECT_V2", [condition, model.const(1), model.const(-1)], x.dims))
    assert sign is not None
    assert (sign.x, sign.falls, sign.level.tolist()) == (x, False, [-(2.0**-10)])


@pytest.mark.parametrize(("amount", "threshold"), [(0.1, 0.0), (-0.1, 0.5)])
def test_what_a_grid_says_is_never_negative_need_not_have_a_sign_below_zero(amount: float, threshold: float) -> None:
    """The int8 input has no negative values, so SIGN is never -1. The int8 sum need not represent the number that SIGN
    = -1 would give, -0.9 or -1.1."""
    model = FloatModel()
    levels = model.input(1, 4, type="INT8")
    levels.quantization = parameters(0.5, -128)
    x = model.op("DEQUANTIZE", [levels], levels.dims)
    total = model.elementwise("ADD", model.elementwise("SIGN", x), model.const(amount))
    rounded = model.op("QUANTIZE", [total], x.dims, type="INT8")
    rounded.quantization = parameters(0.0125, -128 if amount > 0 else -120)
    sign = find_sign(model.graph, model.elementwise("SIGN", model.op("DEQUANTIZE", [rounded], x.dims)))
    assert sign is not None
    assert (sign.x, sign.falls, sign.level.tolist()) == (levels, False, [threshold])
