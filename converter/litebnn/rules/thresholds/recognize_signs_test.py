import numpy as np
import pytest

import litebnn
from litebnn.flatbuffer import read_model
from litebnn.rules.build.int8 import int8_constant
from litebnn.rules.thresholds.recognize_signs import recognize_signs
from tests.support.float_models import (
    SIGN_FORMS,
    FloatModel,
    assert_same_values,
    op_names,
    rewritten,
    run_pass,
    sign_weights,
)
from tests.support.quantized_models import Int8Model


@pytest.mark.parametrize("form", SIGN_FORMS)
def test_every_form_is_found(form: str) -> None:
    model = FloatModel()
    changed, names = run_pass(recognize_signs, model.model(model.sign(model.input(1, 4, 4, 32), form)))
    assert changed
    assert names[-2:] in (["LceQuantize", "LceDequantize"], ["THRESHOLD", "LceDequantize"])


def test_what_is_not_a_sign_stays() -> None:
    model = FloatModel()
    x = model.input(1, 4, 4, 32)
    ternary = model.elementwise("SIGN", x)
    heaviside = model.op("CAST", [model.elementwise("GREATER", x, model.const(0), type="BOOL")], x.dims)
    shifted = model.elementwise("SIGN", model.elementwise("ADD", ternary, model.const(1.5)))
    clamped = model.elementwise("ADD", ternary, model.const(0.1), activation="relu")
    uneven = model.op(
        "SELECT_V2", [model.elementwise("LESS", x, model.const(0), type="BOOL"), model.const(1), ternary], x.dims
    )
    changed, _ = run_pass(recognize_signs, model.model(heaviside, shifted, model.elementwise("SIGN", clamped), uneven))
    assert not changed


def test_a_boolean_input_is_quantized_itself() -> None:
    model = FloatModel()
    flag = model.input(1, 4, 4, 32, type="BOOL")
    values = model.const(1), model.const(-1)
    built = model.model(
        model.op("SELECT_V2", [flag, *values], flag.dims), model.op("SELECT_V2", [flag, *values[::-1]], flag.dims)
    )
    _, names = run_pass(recognize_signs, built)
    assert sorted(names) == ["LOGICAL_NOT"] + 2 * ["LceDequantize"] + 2 * ["LceQuantize"]


def test_each_channel_may_have_a_threshold() -> None:
    model = FloatModel()
    x = model.input(1, 4, 4, 32)
    condition = model.elementwise("GREATER_EQUAL", x, model.const(np.arange(32)), type="BOOL")
    _, names = run_pass(
        recognize_signs, model.model(model.op("SELECT_V2", [condition, model.const(1), model.const(-1)], x.dims))
    )
    assert names[-2:] == ["THRESHOLD", "LceDequantize"]


@pytest.mark.parametrize("thresholds", [(-0.5, 0.0, 1.0), (-1.5, -1.0, 0.0), (0.5, 1.5, -1.25), (0.5, 1.5, 0.0)])
def test_thresholds_between_the_two_values_of_a_sign_make_no_other_of_it(thresholds: tuple[float, ...]) -> None:
    model = FloatModel()
    x = model.sign(model.input(1, 4, 4, 3))
    condition = model.elementwise("GREATER_EQUAL", x, model.const(np.array(thresholds)), type="BOOL")
    sign = model.op("SELECT_V2", [condition, model.const(1), model.const(-1)], x.dims)
    source = model.finish(model.conv(sign, sign_weights(np.random.default_rng(0), 8, 3, 3, 3)))
    converted = litebnn.convert_tflite(source)
    is_same = all(-1 < threshold <= 1 for threshold in thresholds)
    assert op_names(converted).count("LceQuantize") == (1 if is_same else 2)
    assert_same_values(source, read_model(converted))


def test_a_threshold_for_each_position_stays_a_comparison() -> None:
    model = FloatModel()
    x = model.input(1, 4, 4, 32)
    level = model.const(np.arange(16).reshape(4, 4, 1))
    condition = model.elementwise("GREATER_EQUAL", x, level, type="BOOL")
    _, names = run_pass(
        recognize_signs, model.model(model.op("SELECT_V2", [condition, model.const(1), model.const(-1)], x.dims))
    )
    assert names == ["GREATER_EQUAL", "LceQuantize", "LceDequantize"]


@pytest.mark.parametrize(
    ("shape", "names"),
    [
        ((1, 1, 1, 32), ["LceQuantize", "TILE", "LceDequantize"]),
        ((1, 4, 4, 1), ["TILE", "LceQuantize", "LceDequantize"]),
        ((1, 4, 1, 1), ["TILE", "LceQuantize", "TILE", "LceDequantize"]),
    ],
)
def test_a_sign_that_grows_by_broadcasting_is_repeated_as_bits(shape: tuple[int, ...], names: list[str]) -> None:
    model = FloatModel()
    condition = model.elementwise("GREATER_EQUAL", model.input(*shape), model.const(0), type="BOOL")
    one, minus = model.const(np.ones((1, 4, 4, 32))), model.const(-np.ones((1, 4, 4, 32)))
    built = model.model(model.op("SELECT_V2", [condition, one, minus], (1, 4, 4, 32)))
    changed, found = run_pass(recognize_signs, built)
    assert changed
    assert [name for name in found if name != "GREATER_EQUAL"] == names


def test_a_select_by_rows_is_left_alone() -> None:
    model = FloatModel()
    condition = model.elementwise("GREATER_EQUAL", model.input(4), model.const(0), type="BOOL")
    one, minus = model.const(np.ones((4, 32))), model.const(-np.ones((4, 32)))
    changed, _ = run_pass(recognize_signs, model.model(model.op("SELECT", [condition, one, minus], (4, 32))))
    assert not changed


def test_a_broadcast_condition_of_int8_values_keeps_their_zero_point() -> None:
    model = Int8Model()
    x = model.input8((1 / 16, -40), 1, 8, 8, 1)
    condition = model.elementwise("GREATER_EQUAL", x, int8_constant("zero", np.zeros(()), 1 / 16, -40), type="BOOL")
    minus = model.const(-np.ones((1, 8, 8, 32)))
    signs = model.op("SELECT_V2", [condition, model.const(1), minus], (1, 8, 8, 32))
    source = model.finish(model.conv(signs, sign_weights(np.random.default_rng(0), 8, 3, 3, 32)))
    converted = litebnn.convert_tflite(source)
    assert "LceBconv2d" in op_names(converted)
    assert_same_values(source, read_model(converted))


@pytest.mark.parametrize("form", ["sign_add_sign", "where_ge", "where_gt"])
def test_the_sign_of_signs_in_another_order_is_these(form: str) -> None:
    model = FloatModel()
    turned = model.transpose(model.sign(model.input(1, 4, 6, 32)), 0, 2, 1, 3)
    changed, names = run_pass(recognize_signs, model.model(model.elementwise("NEG", model.sign(turned, form))))
    assert changed
    assert names.count("LceQuantize") == 1


def test_the_sign_of_signs_that_nothing_else_reads_may_be_an_output() -> None:
    model = FloatModel()
    turned = model.transpose(model.sign(model.input(1, 4, 6, 32)), 0, 2, 1, 3)
    source = model.finish(model.sign(turned))
    assert_same_values(source, rewritten(source, recognize_signs))
