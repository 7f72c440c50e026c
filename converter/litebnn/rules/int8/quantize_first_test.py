import numpy as np
import pytest

import litebnn
from litebnn.analysis.walks import MOST_OPS
from litebnn.contract import LCE_BCONV_2D, BConv2DOptions, Padding
from litebnn.flatbuffer import read_model
from litebnn.graph import Tensor
from litebnn.rules.build.ops import custom_op
from litebnn.rules.int8.quantize_first import quantize_first
from tests.support.float_models import FloatModel, op_names, run_pass, sign_weights
from tests.support.quantized_models import TrainedModel

# A scale of which no sum of binary fractions is a multiple plus a half: runtimes round such sums in different ways. Its
# levels reach 6.
NO_TIES = float(np.float32(np.pi / 128))


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


def between_pools(model: FloatModel, x: Tensor) -> Tensor:
    x = model.max_pool(model.elementwise("RELU6", model.max_pool(x, 2, 1)), 2, 1)
    return model.transpose(x, 0, 3, 1, 2)


def joined_with_itself(model: FloatModel, x: Tensor) -> Tensor:
    return model.concatenated(model.max_pool(x, 2, 2), model.max_pool(x, 2, 2))


def averaged(model: FloatModel, x: Tensor) -> Tensor:
    sizes = (x.dims[0], x.dims[1] // 2, x.dims[2] // 2, x.channels)
    window = {"padding": Padding.VALID, "stride_h": 2, "stride_w": 2, "filter_height": 2, "filter_width": 2}
    return model.op("AVERAGE_POOL_2D", [x], sizes, fused_activation_function=0, **window)


def normalized(model: FloatModel, x: Tensor) -> Tensor:
    x = model.elementwise("MUL", x, model.const(np.random.default_rng(2).choice([-0.5, 0.5, 1], 8)))
    x = model.elementwise("ADD", x, model.const(np.arange(8) / 16))
    return model.max_pool(model.elementwise("RELU", x), 2, 2)


@pytest.mark.usefixtures("library")
@pytest.mark.filterwarnings("ignore:no binary layer")
@pytest.mark.parametrize(
    ("move", "activation", "is_int8"),
    [
        (pooled, "none", True),
        (between_pools, "none", True),
        (normalized, "none", True),
        (averaged, "relu6", True),
        (averaged, "relu", False),
        (joined_with_itself, "none", False),
    ],
)
def test_a_trained_layer_has_the_range_behind_what_only_moves_its_outputs(
    move: object, activation: str, is_int8: bool
) -> None:
    rng = np.random.default_rng(0)
    model = TrainedModel()
    x = model.fake(model.input(1, 6, 6, 8), (1 / 16, 3))
    kernel = model.fake_weights(rng.integers(-3, 4, (8, 3, 3, 8)), rng.choice([0.125, 0.25], 8))
    x = model.conv(x, kernel, np.full(8, 1 / 16), same=True, activation=activation)
    source = model.finish(model.fake(move(model, x), (NO_TIES, -128)))  # type: ignore[operator]
    converted, report = litebnn.convert_tflite(source, return_report=True)
    assert {op.output.type for op in read_model(converted).ops() if op.name == "CONV_2D"} == {
        "INT8" if is_int8 else "FLOAT32"
    }
    assert (report.layers[0].output == "INT8") == is_int8
    sample = rng.standard_normal((1, 6, 6, 8)).astype(np.float32)
    expected, actual = (litebnn.Interpreter(each).predict(sample) for each in (source, converted))
    np.testing.assert_allclose(actual, expected, rtol=0, atol=1.01 * NO_TIES if move is averaged else 1e-6)


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
