import numpy as np

from litebnn.passes.int8.fold_quantized_constants import fold_quantized_constants
from litebnn.rewriting.int8 import parameters
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
