import numpy as np
import pytest

from litebnn.graph import Tensor
from litebnn.passes.find_signs.dequantize_layers_of_signs import dequantize_layers_of_signs
from litebnn.passes.find_signs.recognize_signs import recognize_signs
from litebnn.rewriting.int8 import int8_constant, parameters
from tests.support.float_models import FloatModel, assert_same_values, op_names, rewritten, sign_weights

RNG = np.random.default_rng(0)


def int8_sign(model: FloatModel, x: Tensor) -> Tensor:
    """±1 as int8, in steps of 1/127."""
    condition = model.elementwise("GREATER_EQUAL", x, int8_constant("zero", np.zeros(1), 1 / 16, 5), type="BOOL")
    one, minus = (int8_constant(name, np.full(1, value), 1 / 127) for name, value in (("one", 1), ("minus", -1)))
    sign = model.op("SELECT_V2", [condition, one, minus], x.dims, type="INT8")
    sign.quantization = parameters(1 / 127)
    return sign


def int8_conv(weights: np.ndarray) -> bytes:  # type: ignore[type-arg]
    model = FloatModel()
    x = model.input(1, 6, 6, 32, type="INT8")
    x.quantization = parameters(1 / 16, 5)
    scales = np.abs(weights).max(axis=(1, 2, 3)) / 127
    y = model.conv(int8_sign(model, x), int8_constant("kernel", weights, scales))
    op = model.graph.ops[-1]
    bias = model.const(RNG.integers(-1000, 1000, len(weights)), np.int32)
    bias.quantization = parameters(scales / 127)
    model.graph.set_input(op, 2, bias)
    op.code = type(op.code)("CONV_2D", "", 3)
    y.type, y.quantization = "INT8", parameters(4, -3)
    return model.finish(y)


@pytest.mark.usefixtures("library")
def test_a_layer_of_an_int8_sign_becomes_the_float_layer_of_the_sign() -> None:
    source = int8_conv(sign_weights(RNG, 8, 3, 3, 32))
    result = rewritten(source, recognize_signs, dequantize_layers_of_signs)
    conv, quantize = result.graphs[0].ops[-2:]
    assert (conv.name, conv.output.type, quantize.name) == ("CONV_2D", "FLOAT32", "QUANTIZE")
    assert quantize.output.per_tensor_quantization == (4.0, -3)
    assert_same_values(source, result)


def test_a_layer_whose_weights_are_no_signs_stays_int8() -> None:
    result = rewritten(int8_conv(RNG.standard_normal((8, 3, 3, 32))), recognize_signs, dequantize_layers_of_signs)
    assert op_names(result)[-1] == "CONV_2D"
    assert result.graphs[0].ops[-1].output.type == "INT8"


@pytest.mark.usefixtures("library")
def test_what_stands_between_sign_and_layer_goes_along() -> None:
    model = FloatModel()
    x = model.input(1, 6, 6, 32, type="INT8")
    x.quantization = parameters(1 / 16, 5)
    y = model.max_pool(int8_sign(model, x), 2, 2)
    y.type, y.quantization = "INT8", parameters(1 / 127)
    model.graph.ops[-1].code = type(model.graph.ops[-1].code)("MAX_POOL_2D", "", 2)
    source = model.finish(y)
    result = rewritten(source, recognize_signs, dequantize_layers_of_signs)
    assert op_names(result)[-2:] == ["MAX_POOL_2D", "QUANTIZE"]
    assert result.graphs[0].ops[-2].output.type == "FLOAT32"
    assert_same_values(source, result)
