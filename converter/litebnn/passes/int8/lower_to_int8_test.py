import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from litebnn.graph import Tensor
from litebnn.passes.int8.lower_to_int8 import lower_to_int8
from litebnn.passes.int8.merge_requantizations import merge_requantizations
from litebnn.rewriting.int8 import dequantized, int8_constant, parameters, parameters_of_range, quantized
from tests.support.float_models import FloatModel, run_pass

RNG = np.random.default_rng(0)


def to_int8(model: FloatModel, x: Tensor, scale: float = 0.5, zero_point: int = 3) -> Tensor:
    levels = model.op("QUANTIZE", [x], x.dims, type="INT8")
    levels.quantization = parameters(scale, zero_point)
    return levels


def fake(model: FloatModel, x: Tensor, scale: float = 0.5, zero_point: int = 3) -> Tensor:
    return model.op("DEQUANTIZE", [to_int8(model, x, scale, zero_point)], x.dims)


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


def test_weights_have_a_scale_for_each_output_channel() -> None:
    model = FloatModel()
    kernel = RNG.standard_normal((4, 3, 3, 2)) * np.array([1, 2, 4, 8]).reshape(4, 1, 1, 1)
    y = model.conv(fake(model, model.input(1, 5, 5, 2)), kernel, RNG.standard_normal(4))
    built = model.model(to_int8(model, y))
    changed, names = run_pass(lower_to_int8, built)
    assert changed
    assert names == ["QUANTIZE", "DEQUANTIZE", "CONV_2D"]
    op = built.graphs[0].ops[-1]
    weights, bias = op.input(1), op.input(2)
    np.testing.assert_allclose(weights.quantization.scale, np.abs(kernel).max(axis=(1, 2, 3)) / 127, rtol=1e-6)
    values = dequantized(weights)
    assert values is not None
    np.testing.assert_allclose(values, kernel, atol=0.51 * float(weights.quantization.scale.max()))
    np.testing.assert_allclose(bias.quantization.scale, 0.5 * weights.quantization.scale, rtol=1e-6)
    assert (bias.type, op.code.version) == ("INT32", 3)


def test_an_op_with_a_float_neighbour_stays_float() -> None:
    model = FloatModel()
    x = model.input(1, 4)
    assert not run_pass(
        lower_to_int8, model.model(to_int8(model, model.elementwise("ADD", x, model.const(np.ones(4)))))
    )[0]
    model = FloatModel()
    x = fake(model, model.input(1, 4))
    assert not run_pass(lower_to_int8, model.model(model.elementwise("ADD", x, x)))[0]


def test_a_softmax_needs_its_own_grid() -> None:
    for scale, zero_point, lowered in ((1 / 256, -128, True), (1 / 256, 0, False), (0.1, -128, False)):
        model = FloatModel()
        x = model.op("SOFTMAX", [fake(model, model.input(1, 4))], (1, 4))
        assert run_pass(lower_to_int8, model.model(to_int8(model, x, scale, zero_point)))[0] is lowered


def test_what_is_joined_gets_one_grid() -> None:
    model = FloatModel()
    a, b = (fake(model, model.input(1, 4), scale) for scale in (0.5, 0.25))
    x = model.op("CONCATENATION", [a, b], (1, 8))
    _, names = run_pass(lower_to_int8, model.model(to_int8(model, x)))
    assert names == ["QUANTIZE", "DEQUANTIZE", "QUANTIZE", "DEQUANTIZE", "QUANTIZE", "CONCATENATION"]


@pytest.mark.parametrize("scale", [0.5, 0.25])
def test_quantizing_twice_is_one_quantize_or_one_requantize(scale: float) -> None:
    model = FloatModel()
    twice = to_int8(model, fake(model, model.input(1, 4)), scale)
    built = model.model(model.elementwise("NEG", twice, type="INT8"))
    changed, _ = run_pass(merge_requantizations, built)
    assert changed
    read = built.graphs[0].ops[-1].input(0)
    producer = built.graphs[0].producer(read)
    assert producer is not None
    assert read.per_tensor_quantization == (scale, 3)
    assert producer.input(0).type == ("FLOAT32" if scale == 0.5 else "INT8")


def test_a_constant_operand_is_quantized_over_its_own_range() -> None:
    values = np.array([-3.0, 0.0, 5.0], np.float32)
    tensor = int8_constant("c", values, 8 / 255, -32)
    back = dequantized(tensor)
    assert back is not None
    np.testing.assert_allclose(back, values, atol=8 / 255)
