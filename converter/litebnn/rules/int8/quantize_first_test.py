import numpy as np
import pytest

import litebnn
from litebnn.analysis.walks import MOST_OPS
from litebnn.contract import LCE_BCONV_2D, BConv2DOptions
from litebnn.flatbuffer import read_model
from litebnn.graph import Tensor
from litebnn.rules.build.ops import custom_op
from litebnn.rules.int8.quantize_first import quantize_first
from tests.support.float_models import FloatModel, op_names, run_pass, sign_weights
from tests.support.quantized_models import TrainedModel


def pooled(model: FloatModel, x: Tensor) -> Tensor:
    return model.max_pool(x, 2, 2)


def transposed(model: FloatModel, x: Tensor) -> Tensor:
    return model.transpose(x, 0, 3, 1, 2)


def interleaved(model: FloatModel, x: Tensor) -> Tensor:
    return model.op("DEPTH_TO_SPACE", [x], (1, 8, 8, 8), block_size=2)


def joined(model: FloatModel, x: Tensor) -> Tensor:
    other = model.conv(model.graph.ops[-1].input(0), sign_weights(np.random.default_rng(1), 32, 3, 3, 32))
    return model.op("CONCATENATION", [x, other], (1, 4, 4, 64), axis=3, fused_activation_function=0)


@pytest.mark.parametrize("move", [pooled, transposed, interleaved, joined])
def test_layers_write_the_levels_that_are_moved(move: object) -> None:
    model = TrainedModel()
    x = model.sign(model.input(1, 6, 6, 32))
    x = model.conv(x, sign_weights(np.random.default_rng(0), 32, 3, 3, 32), np.full(32, 1 / 16))
    source = model.finish(model.fake(move(model, x), (0.5, 3)))  # type: ignore[operator]
    converted = litebnn.convert_tflite(source)
    types = {op.name: op.output.type for op in read_model(converted).ops()}
    assert types.pop("LceQuantize") == "INT32"
    assert types.pop("DEQUANTIZE") == "FLOAT32"
    assert set(types.values()) == {"INT8"}
    sample = np.random.default_rng(2).standard_normal((1, 6, 6, 32)).astype(np.float32)
    expected, actual = (litebnn.Interpreter(each).predict(sample) for each in (source, converted))
    np.testing.assert_array_equal(actual, expected)


@pytest.mark.parametrize("case", ["of another layer", "read by others", "far away"])
def test_what_is_no_binary_layers_alone_stays_float(case: str) -> None:
    model = TrainedModel()
    x = model.conv(model.input(1, 6, 6, 32), sign_weights(np.random.default_rng(0), 32, 1, 1, 32))
    if case != "of another layer":
        bits = model.packed(model.input(1, 6, 6, 32))
        model.graph.replace(model.graph.ops[0], custom_op(LCE_BCONV_2D, [bits], x, BConv2DOptions(channels_in=32)))
    y = x
    for _ in range(MOST_OPS + 2 if case == "far away" else 1):
        y = model.max_pool(y, 1, 1)
    built = model.model(model.fake(y, (0.5, 3)), *([x] if case == "read by others" else []))
    assert run_pass(quantize_first, built) == (False, op_names(built))


def test_a_row_of_moves_is_quantized_from_its_end() -> None:
    model = TrainedModel()
    bits = model.packed(model.input(1, 6, 6, 32))
    y = Tensor("layer", "FLOAT32", (1, 6, 6, 32))
    model.graph.insert(custom_op(LCE_BCONV_2D, [bits], y, BConv2DOptions(channels_in=32)))
    for _ in range(8):
        y = model.max_pool(y, 1, 1)
    built = model.model(model.fake(y, (0.5, 3)))
    while run_pass(quantize_first, built)[0]:
        pass
    assert {op.output.type for op in built.ops() if op.name == "MAX_POOL_2D"} == {"INT8"}
