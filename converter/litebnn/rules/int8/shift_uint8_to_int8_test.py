import numpy as np

from litebnn.analysis.quantization import parameters
from litebnn.rules.int8.shift_uint8_to_int8 import shift_uint8_to_int8
from tests.support.float_models import FloatModel, run_pass


def test_the_uint8_grid_is_shifted_by_128() -> None:
    model = FloatModel()
    x = model.input(1, 4)
    levels = model.op("QUANTIZE", [x], x.dims, type="UINT8")
    levels.quantization = parameters(0.5, 130)
    y = model.op("DEQUANTIZE", [levels], x.dims)
    changed, _ = run_pass(shift_uint8_to_int8, model.model(y))
    assert changed
    assert (levels.type, levels.per_tensor_quantization) == ("INT8", (0.5, 2))
    assert model.graph.ops[-1].code.version == 2


def test_a_grid_for_each_channel_is_shifted_too() -> None:
    model = FloatModel()
    levels = model.op("QUANTIZE", [model.const(np.ones((2, 3)))], (2, 3), type="UINT8")
    levels.quantization = parameters([0.5, 0.25, 1.0], 128, 1)
    y = model.op("DEQUANTIZE", [levels], levels.dims)
    assert run_pass(shift_uint8_to_int8, model.model(y))[0]
    assert levels.type == "INT8"
    np.testing.assert_array_equal(levels.quantization.zero_point, np.zeros(3))
    assert (levels.quantization.scale.tolist(), levels.quantization.axis) == ([0.5, 0.25, 1.0], 1)


def test_uint8_that_others_see_stays() -> None:
    model = FloatModel()
    x = model.input(1, 4)
    levels = model.op("QUANTIZE", [x], x.dims, type="UINT8")
    levels.quantization = parameters(0.5, 130)
    assert not run_pass(shift_uint8_to_int8, model.model(levels))[0]
