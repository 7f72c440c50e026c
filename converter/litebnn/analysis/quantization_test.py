from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import litebnn
from litebnn.analysis.constants import ELEMENTWISE
from litebnn.analysis.quantization import (
    NARROW_TYPES,
    as_compared,
    dequantized,
    numbers_of_grid,
    pack_levels,
    parameters,
    parameters_of_range,
    quantized,
)
from litebnn.graph import Buffer, Tensor
from litebnn.rules.build.int8 import int8_constant
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


@pytest.mark.parametrize(("bits", "expected"), [(4, [0xF1, 0x10, 0x0F]), (2, [0x4D, 0x03])])
def test_levels_are_packed_from_the_lowest_bits(bits: int, expected: list[int]) -> None:
    assert pack_levels(np.array([[1, -1, 0, 1, -1]], np.int8), bits).tolist() == expected


@pytest.mark.parametrize("type", NARROW_TYPES)
def test_levels_of_narrow_types_are_read_as_they_are_packed(type: str) -> None:
    bits = NARROW_TYPES[type]
    levels = np.random.default_rng(0).integers(-(1 << bits - 1), 1 << bits - 1, (5, 3)).astype(np.int8)
    scales = np.arange(1, 6, dtype=np.float32) / 4
    tensor = Tensor("w", type, levels.shape, Buffer(pack_levels(levels, bits)), quantization=parameters(scales))
    values = dequantized(tensor)
    assert values is not None
    np.testing.assert_array_equal(values, levels * scales[:, None])
    for other in (replace(tensor, buffer=Buffer(np.zeros(1, np.uint8))), replace(tensor, is_sparse=True)):
        assert dequantized(other) is None
