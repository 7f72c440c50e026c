import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import litebnn
from litebnn.rewriting.constants import ELEMENTWISE
from litebnn.rewriting.int8 import (
    as_compared,
    dequantized,
    int8_constant,
    numbers_of_grid,
    parameters,
    parameters_of_range,
    quantized,
)
from tests.support.float_models import FloatModel


@given(st.floats(-100, 100), st.floats(-100, 100))
def test_a_range_is_covered_and_holds_zero_exactly(first: float, second: float) -> None:
    low, high = min(first, second, 0.0), max(first, second, 0.0)
    q = parameters_of_range(low, high)
    scale, zero_point = float(q.scale[0]), int(q.zero_point[0])
    assert -128 <= zero_point <= 127
    ends = np.array([low, high, 0.0], np.float32)
    back = (quantized(ends, scale, zero_point).astype(np.float64) - zero_point) * scale
    np.testing.assert_allclose(back, ends, atol=scale * 0.51)
    assert back[2] == 0


def test_a_constant_operand_is_quantized_over_its_own_range() -> None:
    values = np.array([-3.0, 0.0, 5.0], np.float32)
    tensor = int8_constant("c", values, 8 / 255, -32)
    back = dequantized(tensor)
    assert back is not None
    np.testing.assert_allclose(back, values, atol=8 / 255)


@pytest.mark.usefixtures("library")
@pytest.mark.parametrize("comparison", ["GREATER_EQUAL", "GREATER", "EQUAL"])
def test_levels_are_compared_as_the_runtime_does(comparison: str) -> None:
    rng = np.random.default_rng(0)
    levels = np.arange(-128, 128, dtype=np.int8)[None]
    for scale in (2.0**-10, 2.0**-9, 2.0**-9 * 1.01, 0.5, 1 / 127, *np.exp(rng.uniform(-9, -0.1, 15))):
        model = FloatModel()
        x = model.input(1, 256, type="INT8")
        x.quantization = parameters(scale, 3)
        number = float(rng.choice([0.0, 10 * scale, rng.normal() * 50 * scale]))
        other = int8_constant("number", np.full((), number), max(abs(number), 1e-6) / 100, -5)
        result = litebnn.Interpreter(model.finish(model.elementwise(comparison, x, other, type="BOOL"))).predict(levels)
        numbers, against = numbers_of_grid(x), dequantized(other)
        assert numbers is not None
        assert against is not None
        scales = (grid[0] for grid in (x.per_tensor_quantization, other.per_tensor_quantization) if grid is not None)
        left, right = (as_compared(values, one) for values, one in zip((numbers, against), scales, strict=True))
        np.testing.assert_array_equal(ELEMENTWISE[comparison](left, right), result[0])
