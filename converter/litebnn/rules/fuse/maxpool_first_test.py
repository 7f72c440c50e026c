import numpy as np
import pytest

from litebnn.analysis.match import fused_activation
from litebnn.convert import convert_tflite
from litebnn.flatbuffer import read_model
from litebnn.graph import Model, OpCode, Tensor
from litebnn.rules.build.int8 import int8_constant
from litebnn.rules.build.notes import Notes
from litebnn.rules.fuse.maxpool_first import maxpool_first
from litebnn.rules.phases import run_phases
from tests.support.float_models import FloatModel, assert_same_values, dyadic, op_names, run_pass, sign_weights

RNG = np.random.default_rng(0)
SCALES = np.where(np.arange(8) % 2, 2.0, 0.5)
MIXED = SCALES * np.where(np.arange(8) % 3, 1, -1)


def batch_norm(model: FloatModel, x: Tensor, scales: np.ndarray = SCALES, activation: str = "relu") -> Tensor:
    scaled = model.elementwise("MUL", x, model.const(scales))
    return model.elementwise("ADD", scaled, model.const(dyadic(RNG, 8)), activation=activation)


def prelu(model: FloatModel, x: Tensor, slope: float) -> Tensor:
    return model.op("PRELU", [x, model.const(np.full((1, 1, 8), slope))], x.dims)


def shrunk(source: bytes) -> Model:
    model = read_model(source)
    run_phases(model, ("lower",), Notes(model))
    return model


def names_after(model: FloatModel, *outputs: Tensor) -> list[str]:
    return [op.name for op in shrunk(model.finish(*outputs)).ops()]


@pytest.mark.parametrize("same", [True, False])
@pytest.mark.parametrize("activation", ["none", "relu", "relu6"])
def test_a_batch_norm_is_done_for_the_largest_values(same: bool, activation: str) -> None:
    model = FloatModel()
    x = batch_norm(model, model.input(1, 8, 8, 8), activation=activation)
    source = model.finish(model.max_pool(x, 3, 2, same=same))
    result = shrunk(source)
    assert [op.name for op in result.ops()] == ["MAX_POOL_2D", "MUL", "ADD"]
    assert_same_values(source, result)


@pytest.mark.parametrize("layer", ["CONV_2D", "DEPTHWISE_CONV_2D"])
def test_a_convolution_negates_the_channels_that_a_batch_norm_negates(layer: str) -> None:
    model = FloatModel()
    x, weights, bias = model.input(1, 8, 8, 8), dyadic(RNG, 8, 3, 3, 8), dyadic(RNG, 8)
    if layer == "CONV_2D":
        y = model.conv(x, weights, bias)
    else:
        options = {"padding": 1, "stride_w": 1, "stride_h": 1, "depth_multiplier": 1, "fused_activation_function": 0}
        inputs = [x, model.const(weights[:1]), model.const(bias)]
        y = model.op(layer, inputs, (1, 6, 6, 8), dilation_w_factor=1, dilation_h_factor=1, **options)
    source = model.finish(model.max_pool(batch_norm(model, y, MIXED), 2, 2))
    result = shrunk(source)
    assert [op.name for op in result.ops()] == [layer, "MAX_POOL_2D", "MUL", "ADD"]
    assert_same_values(source, result)


def test_in_a_network_of_binary_layers_too() -> None:
    model = FloatModel()
    y = model.conv(model.input(1, 8, 8, 8), dyadic(RNG, 8, 1, 1, 8), dyadic(RNG, 8))
    y = model.max_pool(batch_norm(model, y, MIXED), 2, 2)
    binary = model.conv(model.sign(y), sign_weights(RNG, 8, 1, 1, 8))
    source = model.finish(model.elementwise("ADD", y, binary))
    converted = convert_tflite(source)
    assert op_names(converted)[:4] == ["CONV_2D", "MAX_POOL_2D", "MUL", "ADD"]
    assert_same_values(source, read_model(converted))


def test_what_rises_goes_after_though_a_negative_scale_stays() -> None:
    model = FloatModel()
    source = model.finish(model.max_pool(batch_norm(model, model.input(1, 8, 8, 8), MIXED), 2, 2))
    result = shrunk(source)
    assert [op.name for op in result.ops()] == ["MUL", "MAX_POOL_2D", "ADD"]
    assert_same_values(source, result)


def test_the_clamp_of_the_pooling_goes_into_what_is_after_it() -> None:
    model = FloatModel()
    x = batch_norm(model, model.input(1, 8, 8, 8), MIXED, activation="none")
    source = model.finish(model.max_pool(x, 2, 2, activation="relu"))
    result = shrunk(source)
    assert [(op.name, fused_activation(op)) for op in result.ops()] == [("MUL", 0), ("MAX_POOL_2D", 0), ("ADD", 1)]
    assert_same_values(source, result)


@pytest.mark.parametrize("activation", ["relu", "relu6"])
def test_two_clamps_stay(activation: str) -> None:
    model = FloatModel()
    x = batch_norm(model, model.input(1, 8, 8, 8), activation=activation)
    assert names_after(model, model.max_pool(x, 2, 2, activation="relu1")) == ["MUL", "ADD", "MAX_POOL_2D"]
    model = FloatModel()
    x = model.elementwise(activation.upper(), model.input(1, 8, 8, 8))
    assert names_after(model, model.max_pool(x, 2, 2, activation="relu1"))[-1] == "MAX_POOL_2D"


@pytest.mark.parametrize("slope", [0.0, 0.25])
def test_a_prelu_that_rises_goes_after(slope: float) -> None:
    model = FloatModel()
    source = model.finish(model.max_pool(prelu(model, model.input(1, 8, 8, 8), slope), 2, 2))
    result = shrunk(source)
    assert [op.name for op in result.ops()] == ["MAX_POOL_2D", "PRELU"]
    assert_same_values(source, result)


@pytest.mark.parametrize("scales", [np.zeros(8), np.full(8, np.inf), np.full(8, np.nan), -SCALES])
def test_scales_that_do_not_keep_the_order_stay(scales: np.ndarray) -> None:
    model = FloatModel()
    x = model.elementwise("MUL", model.input(1, 8, 8, 8), model.const(scales))
    assert names_after(model, model.max_pool(x, 2, 2)) == ["MUL", "MAX_POOL_2D"]


@pytest.mark.parametrize("shift", [np.inf, -np.inf, np.nan])
def test_shifts_that_do_not_keep_the_order_stay(shift: float) -> None:
    model = FloatModel()
    x = model.elementwise("ADD", model.input(1, 8, 8, 8), model.const(np.full(8, shift)))
    assert names_after(model, model.max_pool(x, 2, 2)) == ["ADD", "MAX_POOL_2D"]


def test_a_prelu_that_falls_stays() -> None:
    model = FloatModel()
    assert names_after(model, model.max_pool(prelu(model, model.input(1, 8, 8, 8), -0.5), 2, 2))[0] == "PRELU"


def test_an_image_that_others_see_stays() -> None:
    model = FloatModel()
    x = model.elementwise("RELU", model.input(1, 8, 8, 8))
    assert names_after(model, model.max_pool(x, 2, 2), x) == ["RELU", "MAX_POOL_2D"]


def test_a_convolution_that_others_see_is_not_negated() -> None:
    model = FloatModel()
    y = model.conv(model.input(1, 8, 8, 8), dyadic(RNG, 8, 1, 1, 8))
    pooled = model.max_pool(model.elementwise("MUL", y, model.const(-SCALES)), 2, 2)
    assert names_after(model, pooled, y) == ["CONV_2D", "MUL", "MAX_POOL_2D"]


def test_a_convolution_with_a_clamp_is_not_negated() -> None:
    model = FloatModel()
    y = model.conv(model.input(1, 8, 8, 8), dyadic(RNG, 8, 1, 1, 8), activation="relu")
    pooled = model.max_pool(model.elementwise("MUL", y, model.const(-SCALES)), 2, 2)
    assert names_after(model, pooled) == ["CONV_2D", "MUL", "MAX_POOL_2D"]


@pytest.mark.parametrize("case", ["int8 weights", "computed weights", "computed bias", "zero", "infinite", "dense"])
def test_a_layer_whose_channels_cannot_be_negated_is_not(case: str) -> None:
    model = FloatModel()
    y = model.conv(model.input(1, 8, 8, 8), dyadic(RNG, 8, 1, 1, 8), dyadic(RNG, 8))
    layer = model.graph.ops[-1]
    if case == "int8 weights":
        model.graph.set_input(layer, 1, int8_constant("kernel", np.ones((8, 1, 1, 8)), 1 / 127))
    elif case.startswith("computed"):
        place = 1 if case == "computed weights" else 2
        model.graph.set_input(layer, place, model.input(*layer.input(place).shape))
    elif case == "dense":
        layer.code = OpCode("FULLY_CONNECTED")
    scales = np.where(np.arange(8) == 3, {"zero": 0.0, "infinite": -np.inf}.get(case, -1.0), -SCALES)
    built = model.model(model.max_pool(model.elementwise("MUL", y, model.const(scales)), 2, 2))
    before = [list(op.inputs) for op in built.ops()]
    assert not run_pass(maxpool_first, built)[0]
    assert [list(op.inputs) for op in built.ops()] == before


def test_as_many_values_are_none_gained() -> None:
    model = FloatModel()
    x = model.elementwise("RELU", model.input(1, 8, 8, 8))
    assert names_after(model, model.max_pool(x, 2, 1)) == ["RELU", "MAX_POOL_2D"]


def test_other_inputs_than_constants_stay() -> None:
    model = FloatModel()
    x = model.elementwise("ADD", model.input(1, 8, 8, 8), model.input(1, 8, 8, 8))
    assert names_after(model, model.max_pool(x, 2, 2)) == ["ADD", "MAX_POOL_2D"]
