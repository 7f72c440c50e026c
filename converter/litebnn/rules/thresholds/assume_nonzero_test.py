import numpy as np
import pytest

import litebnn
from litebnn.flatbuffer import read_model, write_model
from litebnn.rules.build.notes import Notes
from litebnn.rules.phases import BINARY_PHASES, run_phases
from litebnn.rules.thresholds.assume_nonzero import assume_nonzero
from tests.support.float_models import FloatModel, assert_same_values, op_names, sign_weights
from tests.support.level_spellings import ternary

WEIGHTS = sign_weights(np.random.default_rng(0), 8, 3, 3, 32)


@pytest.mark.parametrize("scale", [1, -1])
def test_a_lone_sign_becomes_one_of_two_values_and_is_named(scale: float) -> None:
    model = FloatModel()
    lone = model.elementwise("MUL", model.elementwise("SIGN", model.input(1, 8, 8, 32)), model.const(scale))
    built = model.model(model.conv(lone, WEIGHTS))
    notes = Notes(built)
    assume_nonzero(built.graphs[0], notes)
    run_phases(built, BINARY_PHASES, notes)
    assert op_names(built) == ["LceQuantize", "LceBconv2d"]
    assert len(notes.warnings) == 1
    assert "sign_2: taken for 1 where its input is 0" in next(iter(notes.warnings))


@pytest.mark.parametrize(("scale", "expected"), [(1, [-1, -1, 1, 1]), (-1, [1, 1, -1, -1])])
def test_values_are_what_they_were_with_a_sign_of_zero_that_is_1(scale: float, expected: list[float]) -> None:
    model = FloatModel()
    built = model.model(model.elementwise("MUL", model.elementwise("SIGN", model.input(1, 4)), model.const(scale)))
    assume_nonzero(built.graphs[0], Notes(built))
    actual = litebnn.Interpreter(write_model(built)).predict(np.array([[-2, -0.125, 0, 3]], np.float32))
    np.testing.assert_array_equal(actual, [expected])


def test_the_zero_of_a_ternary_quantizer_is_a_level_and_stays() -> None:
    model = FloatModel()
    source = model.finish(model.conv(ternary(model, model.input(1, 8, 8, 32)), WEIGHTS))
    result, report = litebnn.convert_tflite(source, assume_nonzero=True, return_report=True)
    assert report.layers[0].binary
    assert not report.noted
    assert_same_values(source, read_model(result))


def test_signs_before_what_takes_levels_are_made_such() -> None:
    model = FloatModel()
    x = model.conv(model.elementwise("SIGN", model.input(1, 8, 8, 32)), WEIGHTS)
    source = model.finish(model.conv(ternary(model, x), sign_weights(np.random.default_rng(0), 8, 3, 3, 8)))
    _, report = litebnn.convert_tflite(source, assume_nonzero=True, return_report=True)
    assert [layer.binary for layer in report.layers] == [True, True]


@pytest.mark.parametrize("source", ["RELU", "ABS", "pooled", "add", "scaled", "fused"])
def test_what_is_never_negative_takes_0_and_1_and_needs_no_option(source: str) -> None:
    model = FloatModel()
    x = model.input(1, 8, 8, 32)
    if source == "pooled":
        x = model.max_pool(model.pad(model.elementwise("RELU", x), [(1, 1), (1, 1)], -np.inf), 3, 2)
    elif source == "add":
        x = model.elementwise("ADD", x, model.const(1), activation="relu6")
    elif source == "scaled":
        x = model.elementwise("TANH", model.elementwise("MUL", model.elementwise("RELU", x), model.const(5)))
    elif source == "fused":
        x = model.conv(x, np.random.default_rng(0).standard_normal((32, 1, 1, 32)), activation="relu")
    else:
        x = model.elementwise(source, x)
    built = model.model(model.conv(model.elementwise("SIGN", x), WEIGHTS))
    notes = Notes(built)
    assume_nonzero(built.graphs[0], notes)
    assert "SIGN" in op_names(built)
    assert not notes.warnings
    run_phases(built, BINARY_PHASES, notes)
    assert op_names(built)[-1] == "LceBconv2d"


def test_a_sign_that_is_never_zero_is_left_to_the_others() -> None:
    model = FloatModel()
    sign = model.sign(model.input(1, 4, 4, 32), "where_ge")
    ternary = model.elementwise("MUL", model.input(1, 4), model.elementwise("SIGN", model.input(1, 4)))
    built = model.model(sign, ternary)
    notes = Notes(built)
    assume_nonzero(built.graphs[0], notes)
    assert len(notes.warnings) == 1
