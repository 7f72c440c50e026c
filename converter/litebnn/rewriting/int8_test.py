import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import litebnn
from litebnn.graph import Tensor
from litebnn.rewriting.int8 import (
    dequantized,
    int8_constant,
    parameters,
    parameters_of_range,
    quantized,
    tells_zero_apart,
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


FINEST = 2.0**-9


@pytest.mark.parametrize(("scale", "told"), [(FINEST, True), (np.nextafter(FINEST, 0, dtype=np.float32), False)])
def test_a_comparison_with_zero_needs_a_grid_that_is_not_too_fine(scale: float, told: bool) -> None:
    tensor = int8_constant("levels", np.zeros(1), scale, 3)
    assert tells_zero_apart(tensor) is told
    assert not tells_zero_apart(Tensor("float", "FLOAT32", (1,)))


@pytest.mark.usefixtures("library")
@pytest.mark.parametrize("scale", [2.0**-10, 2.0**-9, 2.0**-9 * 1.01, 0.5])
def test_where_zero_is_told_apart_the_runtime_says_so(scale: float) -> None:
    model = FloatModel()
    x = model.input(1, 256, type="INT8")
    x.quantization = parameters(scale, 3)
    zero = int8_constant("zero", np.zeros(()), scale, 3)
    is_told = tells_zero_apart(x)
    model_of_it = model.finish(model.elementwise("GREATER_EQUAL", x, zero, type="BOOL"))
    levels = np.arange(-128, 128, dtype=np.int8)[None]
    found = litebnn.Interpreter(model_of_it).predict(levels)
    assert np.array_equal(found, levels >= 3) or not is_told
