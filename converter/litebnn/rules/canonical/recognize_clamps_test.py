from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import litebnn
from litebnn.flatbuffer import read_model, write_model
from litebnn.graph import Tensor
from litebnn.rules.canonical.recognize_clamps import find_clamp, find_extreme, recognize_clamps
from litebnn.rules.phases import rules_of
from tests.support.float_models import FloatModel, op_names, rewritten, sign_weights

_OPPOSITE = {"GREATER": "LESS_EQUAL", "GREATER_EQUAL": "LESS", "LESS": "GREATER_EQUAL", "LESS_EQUAL": "GREATER"}
_MIRRORED = {"GREATER": "LESS", "GREATER_EQUAL": "LESS_EQUAL", "LESS": "GREATER", "LESS_EQUAL": "GREATER_EQUAL"}


def limited(
    model: FloatModel, x: Tensor, comparison: str, limit: float, *, form: str = "", compared: Tensor | None = None
) -> Tensor:
    """Appends where(x > limit, limit, x), or the same with another comparison. The form may mirror the comparison,
    negate it, swap the operands of the select, or spread the constants over all channels."""
    number = model.const(np.full(x.dims[-1:], limit) if "spread" in form else limit)
    sides: tuple[Tensor, ...] = (x if compared is None else compared, number)
    picked: tuple[Tensor, ...] = (number, x)
    if "mirrored" in form:
        comparison, sides = _MIRRORED[comparison], sides[::-1]
    if "opposite" in form:
        comparison, picked = _OPPOSITE[comparison], picked[::-1]
    condition = model.elementwise(comparison, *sides, type="BOOL")
    if "not" in form:
        condition, picked = model.elementwise("LOGICAL_NOT", condition, type="BOOL"), picked[::-1]
    return model.op("SELECT_V2", [condition, *picked], x.dims)


def ops_of(model: FloatModel, output: Tensor) -> list[str]:
    return op_names(rewritten(model.finish(output), recognize_clamps, *rules_of("tidy")))


@pytest.mark.parametrize(("above", "below"), [("GREATER", "LESS"), ("GREATER_EQUAL", "LESS_EQUAL")])
@pytest.mark.parametrize("form", ["", "mirrored", "opposite", "not", "spread", "mirrored not spread"])
@pytest.mark.parametrize("compared", ["clamped", "source"])
def test_two_selects_are_one_activation(above: str, below: str, form: str, compared: str) -> None:
    model = FloatModel()
    x = model.input(2, 8)
    clamped = limited(model, x, above, 1, form=form)
    source = x if compared == "source" else clamped
    assert ops_of(model, limited(model, clamped, below, -1, form=form, compared=source)) == ["RELU_N1_TO_1"]


@pytest.mark.parametrize(
    ("low", "high", "names"),
    [
        (0, 6, ["RELU6"]),
        (0, np.inf, ["RELU"]),
        (0, 0.75, ["RELU", "MINIMUM"]),
        (-2, 3, ["MAXIMUM", "MINIMUM"]),
        (-2, np.inf, ["MAXIMUM"]),
        (-np.inf, -0.5, ["MINIMUM"]),
        (1.5, 1.5, ["MAXIMUM", "MINIMUM"]),
    ],
)
def test_any_limits(low: float, high: float, names: list[str]) -> None:
    model = FloatModel()
    x = y = model.input(1, 64)
    y = y if np.isinf(high) else limited(model, y, "GREATER", high)
    y = y if np.isinf(low) else limited(model, y, "LESS", low)
    source = model.finish(y)
    result = write_model(rewritten(source, recognize_clamps, *rules_of("tidy")))
    assert op_names(result) == names
    x = np.random.default_rng(0).integers(-64, 64, (1, 64)).astype(np.float32) / 16
    expected, actual = (litebnn.Interpreter(each).predict(x) for each in (source, result))
    np.testing.assert_array_equal(actual, expected)


@pytest.mark.parametrize("shifts", ["SUB", "ADD"])
@pytest.mark.parametrize(
    ("low", "high", "names"),
    [(0, 0.75, ["RELU", "MINIMUM"]), (-1, 1, ["RELU_N1_TO_1"]), (-3, -1, ["MAXIMUM", "MINIMUM"])],
)
def test_magnitudes_are_clamps(low: float, high: float, names: list[str], shifts: str) -> None:
    """PACT is written as 0.5 * (|x| - |x - alpha| + alpha), a hardtanh as 0.5 * (|x + 1| - |x - 1|)."""
    model = FloatModel()
    x = model.input(1, 8)
    numbers = [model.const(limit if shifts == "SUB" else -limit) for limit in (low, high)]
    above_low, above_high = (model.elementwise("ABS", model.elementwise(shifts, x, number)) for number in numbers)
    both = model.elementwise("SUB", above_low, above_high)
    both = model.elementwise("ADD", both, model.const(low + high))
    assert ops_of(model, model.elementwise("MUL", both, model.const(0.5))) == names


def test_a_clamp_of_a_sum_keeps_the_sum() -> None:
    model = FloatModel()
    total = model.elementwise("ADD", model.input(1, 8), model.input(1, 8))
    assert ops_of(model, limited(model, limited(model, total, "GREATER", 1), "LESS", -1)) == ["ADD", "RELU_N1_TO_1"]


@pytest.mark.parametrize(
    ("compared", "picked"),
    [(1.0, 0.5), (0.5, 1.0), (1.0, -1.0)],
)
def test_a_jump_is_no_clamp(compared: float, picked: float) -> None:
    model = FloatModel()
    x = model.input(1, 8)
    condition = model.elementwise("GREATER", x, model.const(compared), type="BOOL")
    model.op("SELECT_V2", [condition, model.const(picked), x], x.dims)
    assert find_clamp(model.graph, model.graph.ops[-1]) is None


_LIMITS = np.arange(8) / 4


@pytest.mark.parametrize("comparison", sorted(_OPPOSITE))
@pytest.mark.parametrize("shapes", [((8,), (8,)), ((8,), (1, 1, 8)), ((1, 3, 8), (3, 8)), None])
@pytest.mark.parametrize("form", ["", "not", "swapped"])
def test_limits_of_channels_and_of_elements(comparison: str, shapes: Any, form: str) -> None:
    """The last pair of shapes stands for two tensors that are not constant."""
    model = FloatModel()
    x = model.input(2, 3, 8)
    if shapes is None:
        compared = picked = model.elementwise("SQUARE", x)
    else:
        limits = _LIMITS if 3 not in (*shapes[0], *shapes[1]) else np.arange(24) / 16
        compared, picked = (model.const(limits.reshape(shape)) for shape in shapes)
    condition = model.elementwise(comparison, x, compared, type="BOOL")
    order = (picked, x) if form == "swapped" else (x, picked)
    if form == "not":
        condition = model.elementwise("LOGICAL_NOT", condition, type="BOOL")
    source = model.finish(model.op("SELECT_V2", [condition, *order], x.dims))
    result = write_model(rewritten(source, recognize_clamps, *rules_of("tidy")))
    is_greater = comparison.startswith("GREATER") == (form == "")
    assert op_names(result)[-1] == ("MAXIMUM" if is_greater else "MINIMUM")
    sample = np.random.default_rng(0).integers(-8, 8, (2, 3, 8)).astype(np.float32) / 4
    expected, actual = (litebnn.Interpreter(each).predict(sample) for each in (source, result))
    np.testing.assert_array_equal(actual, expected)


@pytest.mark.parametrize("kind", ["others", "other order of axes", "equal", "vector"])
def test_selects_of_others_than_what_is_compared_stay(kind: str) -> None:
    model = FloatModel()
    x = model.input(8, 8)
    compared = model.const(_LIMITS.reshape(8, 1) if kind == "other order of axes" else _LIMITS)
    picked = model.const(_LIMITS + 1 if kind == "others" else _LIMITS)
    if kind == "vector":  # the older SELECT picks rows by a vector
        x = model.input(8)
        condition, x = model.elementwise("GREATER", x, model.const(_LIMITS), type="BOOL"), model.input(8, 8)
    else:
        condition = model.elementwise("EQUAL" if kind == "equal" else "GREATER", x, compared, type="BOOL")
    model.op("SELECT" if kind == "vector" else "SELECT_V2", [condition, x, picked], x.dims)
    assert find_extreme(model.graph, model.graph.ops[-1]) is None


def test_a_threshold_includes_a_clamp_of_each_channel() -> None:
    rng = np.random.default_rng(0)
    model = FloatModel()
    x = model.conv(model.sign(model.input(1, 4, 4, 32)), sign_weights(rng, 32, 3, 3, 32, alpha=False))
    limits = model.const(np.arange(1, 33) / 8)
    above = model.elementwise("GREATER", x, limits, type="BOOL")
    clamped = model.op("SELECT_V2", [above, limits, x], x.dims)
    source = model.finish(model.conv(model.sign(clamped, "where_ge"), sign_weights(rng, 8, 1, 1, 32, alpha=False)))
    converted = litebnn.convert_tflite(source)
    assert op_names(converted) == ["LceQuantize", "LceBconv2d", "LceBconv2d"]
    sample = rng.standard_normal((1, 4, 4, 32)).astype(np.float32)
    expected, actual = (litebnn.Interpreter(each).predict(sample) for each in (source, converted))
    np.testing.assert_array_equal(actual, expected)


@pytest.mark.parametrize("form", ["", "not", "spread"])
@pytest.mark.parametrize("compared", ["clamped", "source"])
def test_layers_exchange_bits_when_clamps_of_selects_precede_signs(form: str, compared: str) -> None:
    rng = np.random.default_rng(0)
    model = FloatModel()
    x = model.input(1, 64)
    for units in (64, 64, 10):
        clamped = limited(model, x, "GREATER", 1, form=form)
        clamped = limited(model, clamped, "LESS", -1, form=form, compared=x if compared == "source" else None)
        x = model.dense(model.sign(clamped, "scaled_cast"), np.sign(rng.standard_normal((units, 64))))
        if units == 64:
            x = model.elementwise("MUL", x, model.const(rng.choice([0.25, 0.5, 1.0], 64)))
            x = model.elementwise("ADD", x, model.const(rng.integers(-8, 8, 64) / 8))
    source = model.finish(x)
    converted, report = litebnn.convert_tflite(source, return_report=True)
    assert [layer.output for layer in report.layers] == ["bits", "bits", "FLOAT32"]
    assert {op.name for op in read_model(converted).graphs[0].ops} == {"LceQuantize", "LceBconv2d", "RESHAPE"}
    samples = rng.integers(-32, 32, (16, 64)).astype(np.float32) / 16
    for sample in samples:
        expected, actual = (litebnn.Interpreter(each).predict(sample[None]) for each in (source, converted))
        np.testing.assert_array_equal(actual, expected)


@given(st.data())
def test_what_is_found_in_random_selects_is_true(data: st.DataObject) -> None:
    model = FloatModel()
    x = y = model.input(1, 4)
    at = np.arange(-12, 13) / np.float32(4)
    values = at
    numbers = st.sampled_from([-1.0, -0.5, 0.0, 0.5, 1.0])
    for _ in range(data.draw(st.integers(1, 3))):
        comparison, limit = data.draw(st.sampled_from(sorted(_OPPOSITE))), data.draw(numbers)
        of_source, form = data.draw(st.booleans()), data.draw(st.sampled_from(["", "mirrored", "opposite", "not"]))
        y = limited(model, y, comparison, limit, form=form, compared=x if of_source else None)
        operand = at if of_source else values
        values = np.where(getattr(np, comparison.lower())(operand, limit), np.float32(limit), values)
    found = find_clamp(model.graph, model.graph.producer(y))
    if found is not None:
        assert found.x is x
        np.testing.assert_array_equal(np.clip(at, found.low, found.high), values)
