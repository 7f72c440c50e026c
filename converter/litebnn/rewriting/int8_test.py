import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from litebnn.rewriting.int8 import dequantized, int8_constant, parameters_of_range, quantized


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
