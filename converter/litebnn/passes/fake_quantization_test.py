import numpy as np

from litebnn.flatbuffer import schema
from litebnn.passes.fake_quantization import fold_quantized_constants, shift_uint8_to_int8
from litebnn.passes.int8_common import parameters
from tests.float_models import FloatModel, run_pass


def test_the_uint8_grid_is_shifted_by_128() -> None:
    model = FloatModel()
    x = model.input(1, 4)
    levels = model.op("QUANTIZE", [x], x.dims, schema.QuantizeOptionsT(), type="UINT8")
    levels.quantization = parameters(0.5, 130)
    y = model.op("DEQUANTIZE", [levels], x.dims, schema.DequantizeOptionsT())
    changed, _ = run_pass(shift_uint8_to_int8, model.model(y))
    assert changed
    assert (levels.type, levels.per_tensor_quantization) == ("INT8", (0.5, 2))
    assert model.graph.ops[-1].code.version == 2


def test_uint8_that_others_see_stays() -> None:
    model = FloatModel()
    x = model.input(1, 4)
    levels = model.op("QUANTIZE", [x], x.dims, schema.QuantizeOptionsT(), type="UINT8")
    levels.quantization = parameters(0.5, 130)
    assert not run_pass(shift_uint8_to_int8, model.model(levels))[0]


def test_a_constant_is_quantized_now() -> None:
    model = FloatModel()
    values = np.array([[-1.0, 0.25], [3.0, 100.0]], np.float32)
    levels = model.op("QUANTIZE", [model.const(values)], values.shape, schema.QuantizeOptionsT(), type="INT8")
    levels.quantization = parameters([0.5, 0.25], 0, 1)
    y = model.op("DEQUANTIZE", [levels], values.shape, schema.DequantizeOptionsT())
    changed, names = run_pass(fold_quantized_constants, model.model(y))
    assert changed
    assert names == ["DEQUANTIZE"]
    np.testing.assert_array_equal(model.graph.ops[0].input(0).array, [[-2, 1], [6, 127]])
