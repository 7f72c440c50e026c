import numpy as np
import pytest

from litebnn.analysis.quantization import parameters
from litebnn.rules.build.int8 import int8_constant
from litebnn.rules.int8.fold_quantized_constants import fold_quantized_constants
from tests.support.float_models import FloatModel, run_pass


def test_a_constant_is_quantized_now() -> None:
    model = FloatModel()
    values = np.array([[-1.0, 0.25], [3.0, 100.0]], np.float32)
    levels = model.op("QUANTIZE", [model.const(values)], values.shape, type="INT8")
    levels.quantization = parameters([0.5, 0.25], 0, 1)
    y = model.op("DEQUANTIZE", [levels], values.shape)
    changed, names = run_pass(fold_quantized_constants, model.model(y))
    assert changed
    assert names == ["DEQUANTIZE"]
    np.testing.assert_array_equal(model.graph.ops[0].input(0).array, [[-2, 1], [6, 127]])


def test_a_constant_is_transposed_with_its_scales() -> None:
    model = FloatModel()
    values = np.array([[-1.0, 0.25, 1.5], [3.0, 100.0, 2.0]], np.float32)
    levels = model.op("QUANTIZE", [model.const(values)], values.shape, type="INT8")
    levels.quantization = parameters([0.5, 0.25, 1.0], 0, 1)
    back = model.op("DEQUANTIZE", [levels], values.shape)
    built = model.model(model.op("TRANSPOSE", [back, model.const([1, 0], np.int32)], (3, 2)))
    assert run_pass(fold_quantized_constants, built)[0]
    last = built.graphs[0].ops[-1]
    assert last.name == "DEQUANTIZE"
    np.testing.assert_array_equal(last.input(0).array, [[-2, 6], [1, 127], [2, 2]])
    assert last.input(0).quantization.axis == 0


@pytest.mark.parametrize(("scales", "axis", "expected"), [([0.5, 0.25], 0, 1), ([0.5], 0, 0)])
def test_the_axis_of_scales_is_transposed_too(scales: list[float], axis: int, expected: int) -> None:
    model = FloatModel()
    levels = model.op("QUANTIZE", [model.const(np.ones((2, 3)))], (2, 3), type="INT8")
    levels.quantization = parameters(scales, 0, axis)
    back = model.op("DEQUANTIZE", [levels], (2, 3))
    built = model.model(model.op("TRANSPOSE", [back, model.const([1, 0], np.int32)], (3, 2)))
    assert run_pass(fold_quantized_constants, built)[0]
    assert built.graphs[0].ops[-1].input(0).quantization.axis == expected


@pytest.mark.parametrize(("value", "zero_points"), [(np.nan, 0), (np.inf, 0), (1.0, [0, 3])])
def test_what_int8_does_not_hold_stays(value: float, zero_points: int | list[int]) -> None:
    model = FloatModel()
    values = np.array([[1.0, value], [1.0, 2.0]], np.float32)
    levels = model.op("QUANTIZE", [model.const(values)], (2, 2), type="INT8")
    levels.quantization = parameters([0.5, 0.25], zero_points, 1)
    assert not run_pass(fold_quantized_constants, model.model(model.op("DEQUANTIZE", [levels], (2, 2))))[0]


def test_a_scale_of_zero_stays() -> None:
    model = FloatModel()
    levels = model.op("QUANTIZE", [model.const(np.zeros((2, 2)))], (2, 2), type="INT8")
    levels.quantization = parameters([0.5, 0.0], 0, 1)
    assert not run_pass(fold_quantized_constants, model.model(model.op("DEQUANTIZE", [levels], (2, 2))))[0]


@pytest.mark.parametrize("case", ["computed order", "no permutation", "of floats", "computed levels", "other rank"])
def test_other_transposes_stay(case: str) -> None:
    model = FloatModel()
    values = np.ones(6 if case == "other rank" else (2, 3))
    levels = int8_constant("levels", values, 0.5) if case != "computed levels" else model.input(2, 3, type="INT8")
    levels.quantization = parameters(0.5)
    back = model.op("RELU" if case == "of floats" else "DEQUANTIZE", [levels], (2, 3))
    order = (
        model.input(2, type="INT32")
        if case == "computed order"
        else model.const([1, 1] if "no " in case else [1, 0], np.int32)
    )
    built = model.model(model.op("TRANSPOSE", [back, order], (3, 2)))
    assert not run_pass(fold_quantized_constants, built)[0]
