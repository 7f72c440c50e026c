from collections.abc import Callable

import numpy as np
import pytest

import litebnn
from litebnn.analysis.padding import constant_padding
from litebnn.analysis.quantization import parameters
from litebnn.flatbuffer import read_model
from litebnn.graph import Array, Buffer, Model, OpCode, Tensor
from litebnn.rules.binarize.read_as_signs import read_as_signs
from litebnn.rules.build.int8 import int8_constant
from litebnn.rules.build.notes import Notes
from litebnn.rules.phases import rules_of
from litebnn.rules.thresholds.recognize_signs import recognize_signs
from tests.support.float_models import (
    FloatModel,
    assert_same_values,
    binarized,
    op_names,
    rewritten,
    run_pass,
    sign_weights,
)
from tests.support.level_spellings import dorefa
from tests.support.quantized_models import EXACT_GRID, Int8Model
from tests.support.sign_spellings import SPELLINGS

Layer = Callable[[FloatModel, Tensor], Tensor]
WEIGHTS = sign_weights(np.random.default_rng(0), 8, 3, 3, 32)


def pad_values(model: Model) -> list[float]:
    paddings = [constant_padding(op) for op in model.graphs[0].ops if op.name == "PADV2"]
    return [padding.value for padding in paddings if padding is not None]


def test_weights_and_bias_make_up_for_the_values() -> None:
    model = FloatModel()
    x = model.two_values(model.input(1, 4, 4, 32), -1.0, 3.0)
    built = model.model(model.conv(x, WEIGHTS, np.arange(8)))
    assert run_pass(read_as_signs, built)[0]
    layer = built.graphs[0].ops[-1]
    np.testing.assert_array_equal(layer.input(1).array, 2 * WEIGHTS)
    np.testing.assert_array_equal(layer.input(2).array, np.arange(8) + WEIGHTS.sum(axis=(1, 2, 3)))


def test_a_sign_is_called_after_its_condition() -> None:
    model = FloatModel()
    condition = model.elementwise("GREATER_EQUAL", model.input(1, 4, 4, 32), model.const(0), type="BOOL")
    x = model.op("SELECT_V2", [condition, model.const(3), model.const(-1)], condition.dims)
    built = model.model(model.conv(x, WEIGHTS))
    assert run_pass(read_as_signs, built)[0]
    signs = [op.output.name for op in built.ops() if op.name == "SELECT_V2" and op.output is not x]
    assert signs == [f"{condition.name}/sign"]


def test_a_bias_that_is_computed_is_named() -> None:
    model = FloatModel()
    built = model.model(model.conv(model.two_values(model.input(1, 4, 4, 32)), WEIGHTS, np.arange(8)))
    [layer] = (op for op in built.graphs[0].ops if op.name == "CONV_2D")
    bias = layer.input(2)
    bias.buffer, bias.name = Buffer(), "its own bias"
    notes = Notes(built)
    assert not read_as_signs(built.graphs[0], notes)
    assert list(notes.layers[0].reasons) == ['its bias "its own bias" is not a float constant']


def same(model: FloatModel, x: Tensor) -> Tensor:
    return model.conv(x, WEIGHTS, same=True)


def pooled(model: FloatModel, x: Tensor) -> Tensor:
    return model.conv(model.max_pool(x, 2, 2), WEIGHTS, same=True)


def padded(model: FloatModel, x: Tensor) -> Tensor:
    return model.conv(model.pad(x, [(1, 1), (1, 1)]), WEIGHTS)


def padded_with_one(model: FloatModel, x: Tensor) -> Tensor:
    return model.conv(model.pad(x, [(1, 1), (1, 1)], 1.0), WEIGHTS)


@pytest.mark.parametrize(("layer", "pad"), [(same, 1.0), (pooled, -1.0), (padded, 1.0), (padded_with_one, 1.0)])
def test_a_zero_is_a_sign_and_where_possible_plus_one(layer: Layer, pad: float) -> None:
    model = FloatModel()
    built = model.model(layer(model, model.two_values(model.input(1, 8, 8, 32))))
    assert run_pass(read_as_signs, built)[0]
    assert pad_values(built)[-1] == pad


@pytest.mark.parametrize("layer", [same, padded])
def test_values_that_are_padded_with_a_third_one_are_left_alone(layer: Layer) -> None:
    model = FloatModel()
    x = model.two_values(model.input(1, 8, 8, 32), 1.0, 3.0)
    built, notes = binarized(model, layer(model, x))
    assert "CONV_2D" in op_names(built)
    assert "takes 1 and 3 and is padded with 0, which is neither" in "; ".join(notes.layers[0].reasons)


@pytest.mark.parametrize("value", [-np.inf, np.inf])
def test_values_that_are_padded_with_infinity_are_left_alone(value: float) -> None:
    """PyTorch pads the input of a max pool with -inf."""
    model = FloatModel()
    x = model.pad(model.two_values(model.input(1, 8, 8, 32)), [(1, 1), (1, 1)], value)
    _, notes = binarized(model, model.conv(model.max_pool(x, 3, 2), WEIGHTS))
    assert list(notes.layers[0].reasons) == [f"its input takes 0 and 1 and is padded with {value}, which is neither"]


@pytest.mark.parametrize("levels", [lambda m, x: m.two_values(x), dorefa])
def test_the_rounding_of_straight_through_weights_is_not_scaled(levels: Layer) -> None:
    """Exporters write binary weights as (w - c) + c, which has rounding errors. The converter accepts small errors, but
    if the weights were first multiplied by 32, it would take the errors for different weights."""
    rng = np.random.default_rng(0)
    clipped = rng.uniform(-1, 1, (32, 64)).astype(np.float32)
    weights = (sign_weights(rng, 32, 64, alpha=False) * np.float32(1e-3) - clipped) + clipped
    model = FloatModel()
    x = model.elementwise("MUL", levels(model, model.input(1, 64)), model.const(64))
    source = model.finish(model.dense(x, weights))
    converted, report = litebnn.convert_tflite(source, return_report=True)
    assert report.layers[0].binary, str(report)
    inputs = rng.standard_normal((1, 64)).astype(np.float32)
    expected, actual = (litebnn.Interpreter(model).predict(inputs) for model in (source, converted))
    np.testing.assert_allclose(actual, expected, atol=1e-4)


def test_opposite_values_may_be_padded_with_zero() -> None:
    model = FloatModel()
    built, _ = binarized(model, same(model, model.two_values(model.input(1, 8, 8, 32), 0.5, -0.5)))
    assert "CONV_2D" not in op_names(built)


@pytest.mark.parametrize("scale", [0.25, -1.0, -3.0])
def test_a_scaled_sign_is_one_with_other_weights(scale: float) -> None:
    model = FloatModel()
    x = model.elementwise("MUL", model.sign(model.input(1, 8, 8, 32)), model.const(scale))
    built, _ = binarized(model, same(model, x))
    assert op_names(built) == ["LceQuantize", "LceBconv2d"]


@pytest.mark.parametrize("spelling", SPELLINGS)
@pytest.mark.parametrize("layer", [same, padded_with_one])
def test_a_sign_of_a_negated_sign_is_one_with_other_weights(layer: Layer, spelling: str) -> None:
    model = FloatModel()
    opposite = model.elementwise("NEG", model.sign(model.input(1, 4, 4, 32)))
    source = model.finish(layer(model, SPELLINGS[spelling](model, opposite)))
    converted, report = litebnn.convert_tflite(source, return_report=True)
    assert report.layers[0].binary
    assert_same_values(source, read_model(converted))


def test_a_layer_of_other_weights_keeps_its_values() -> None:
    model = FloatModel()
    x = model.two_values(model.input(1, 8, 8, 32))
    changed, _ = run_pass(read_as_signs, model.model(model.conv(x, np.arange(8 * 32).reshape(8, 1, 1, 32))))
    assert not changed


def test_the_padding_of_an_unknown_size_is_named() -> None:
    model = FloatModel()
    x = model.two_values(model.input(1, 8, 8, 32, signature=(1, -1, -1, 32)))
    _, notes = binarized(model, model.conv(x, WEIGHTS, same=True, stride=(2, 2)))
    assert "depends on a size that is not known" in "; ".join(notes.layers[0].reasons)


def test_values_on_the_long_way_round_to_a_dilation() -> None:
    model = FloatModel()
    x = model.space_to_batch(model.two_values(model.input(1, 8, 8, 32)), [2, 2], [(2, 2), (0, 4)])
    source = model.finish(model.batch_to_space(model.conv(x, WEIGHTS), [2, 2], [(0, 0), (1, 1)]))
    result = rewritten(
        source, *rules_of("thresholds"), *rules_of("thresholds"), *rules_of("binarize"), *rules_of("lower")
    )
    assert "CONV_2D" not in op_names(result)
    assert_same_values(source, result)


def test_many_tensors_of_two_values_are_concatenated() -> None:
    model, count = FloatModel(), 70
    images = [model.input(1, 3, 3, 4) for _ in range(count)]
    parts = [model.two_values(image, 0.0, 1.0) for image in images]
    whole = model.op("CONCATENATION", parts, (1, 3, 3, 4 * count), axis=3, fused_activation_function=0)
    source = model.finish(model.conv(whole, sign_weights(np.random.default_rng(0), 8, 1, 1, 4 * count)))
    _, report = litebnn.convert_tflite(source, return_report=True)
    assert report.layers[0].binary


@pytest.mark.parametrize(("value", "is_binary"), [(1e15, True), (1e30, False)])
def test_products_of_two_values_are_within_float32(value: float, is_binary: bool) -> None:
    model = FloatModel()
    left, right = (model.two_values(model.input(1, 3, 3, 32), -value, value) for _ in range(2))
    product = model.elementwise("MUL", left, right)
    source = model.finish(model.conv(product, sign_weights(np.random.default_rng(0), 8, 1, 1, 32)))
    _, report = litebnn.convert_tflite(source, return_report=True)
    assert report.layers[0].binary == is_binary


def test_a_maximum_of_negated_values_is_left_alone() -> None:
    model = FloatModel()
    x = model.elementwise("MUL", model.sign(model.input(1, 8, 8, 32)), model.const(-2.0))
    built, notes = binarized(model, model.conv(model.max_pool(x, 2, 2), WEIGHTS))
    assert "CONV_2D" in op_names(built)
    assert "takes maxima against a sign" in "; ".join(notes.layers[0].reasons)


# The scales and zero points with which the constants 1 and -1 of a sign are quantized. The first pair represents both
# constants exactly, the second pair neither of them, and the third pair no negative number.
GRIDS = {"both": (1 / 127, 0), "neither": (2 / 255, -1), "no_minus": (1 / 255, -128)}


def int8_sign(model: FloatModel, x: Tensor, scale: float, zero_point: int) -> Tensor:
    condition = model.elementwise("GREATER_EQUAL", x, int8_constant("zero", np.zeros(1), 1 / 16, 5), type="BOOL")
    values = (int8_constant(f"value{value}", np.full(1, value), scale, zero_point) for value in (1, -1))
    sign = model.op("SELECT_V2", [condition, *values], x.dims, type="INT8")
    sign.quantization = parameters(scale, zero_point)
    return sign


def int8_input(model: FloatModel) -> Tensor:
    x = model.input(1, 6, 6, 32, type="INT8")
    x.quantization = parameters(1 / 16, 5)
    return x


def quantized(model: FloatModel, layer: Tensor, source: Tensor, kernel: Array, scale: float, zero_point: int) -> Tensor:
    """Makes a layer int8, with a random bias."""
    op = model.graph.producer(layer)
    assert op is not None
    scales = np.abs(kernel).max(axis=tuple(range(1, kernel.ndim))) / 127
    step = (source.per_tensor_quantization or (1.0, 0))[0]
    bias = model.const(np.random.default_rng(1).integers(-1000, 1000, len(kernel)), np.int32)
    bias.quantization = parameters(scales * step)
    model.graph.set_input(op, 1, int8_constant("kernel", kernel, scales))
    model.graph.set_input(op, 2, bias)
    op.code = OpCode(op.name, "", 3)
    layer.type, layer.quantization = "INT8", parameters(scale, zero_point)
    return layer


def int8_conv(kernel: Array, grid: tuple[float, int], *, same: bool = False, activation: str = "none") -> bytes:
    model = FloatModel()
    sign = int8_sign(model, int8_input(model), *grid)
    layer = model.conv(sign, kernel, same=same, activation=activation)
    zero_point = -128 if activation == "relu" else -3
    return model.finish(quantized(model, layer, sign, kernel, 4, zero_point))


@pytest.mark.parametrize("same", [False, True])
@pytest.mark.parametrize("grid", GRIDS.values(), ids=GRIDS)
def test_a_layer_of_an_int8_sign_is_a_float_one_that_is_quantized(grid: tuple[float, int], same: bool) -> None:
    source = int8_conv(WEIGHTS, grid, same=same)
    result = rewritten(source, read_as_signs)
    conv, quantize = result.graphs[0].ops[-2:]
    assert (conv.name, conv.output.type, quantize.name) == ("CONV_2D", "FLOAT32", "QUANTIZE")
    assert quantize.output.per_tensor_quantization == (4.0, -3)
    assert_same_values(source, result)


def test_the_end_of_the_grid_is_clamp_enough() -> None:
    source = int8_conv(WEIGHTS, GRIDS["neither"], activation="relu")
    result = rewritten(source, read_as_signs, recognize_signs)
    assert [op.options.fused_activation_function for op in result.graphs[0].ops if op.name == "CONV_2D"] == [0]
    assert_same_values(source, result)


def test_an_int8_layer_of_other_weights_stays_and_says_so() -> None:
    kernel = np.random.default_rng(0).standard_normal((8, 3, 3, 32))
    model = FloatModel()
    sign = int8_sign(model, int8_input(model), 1 / 127, 0)
    built = model.model(quantized(model, model.conv(sign, kernel), sign, kernel, 4, -3))
    notes = Notes(built)
    assert not read_as_signs(built.graphs[0], notes)
    assert list(notes.layers[0].reasons) == ["its weights are not ±alpha in each output channel"]


@pytest.mark.parametrize("batch", [1, -1])
def test_an_int8_sign_that_is_broadcast(batch: int) -> None:
    model = Int8Model()
    x = model.input8((1 / 16, 3), 1, 1, 1, 32, signature=(batch, 1, 1, 32))
    condition = model.elementwise("GREATER", x, int8_constant("level", np.full((), 0.5), 1 / 16), type="BOOL")
    one, minus = (int8_constant(f"value{value}", np.full((1, 6, 6, 32), value), *EXACT_GRID) for value in (1, -1))
    picked = model.op("SELECT_V2", [condition, one, minus], (batch, 6, 6, 32), type="INT8")
    picked.quantization = parameters(*EXACT_GRID)
    source = model.finish(model.conv8(picked, np.sign(WEIGHTS), np.zeros(8), (1.0, 0), same=True, activation="none"))
    converted, report = litebnn.convert_tflite(source, return_report=True)
    assert report.layers[0].binary
    levels = np.random.default_rng(0).integers(-128, 128, (3, 1, 1, 32)).astype(np.int8)
    expected, actual = (litebnn.Interpreter(model).predict(levels) for model in (source, converted))
    np.testing.assert_array_equal(actual, expected)


def test_what_stands_between_an_int8_sign_and_its_layer_is_done_to_the_sign() -> None:
    model = FloatModel()
    sign = int8_sign(model, int8_input(model), 2 / 255, -1)
    pooled = model.max_pool(sign, 2, 2)
    pooled.type, pooled.quantization = "INT8", sign.quantization
    model.graph.ops[-1].code = OpCode("MAX_POOL_2D", "", 2)
    pads = model.const([(0, 0), (1, 1), (1, 1), (0, 0)], np.int32)
    one = int8_constant("one", np.full((), 1.0), 2 / 255, -1)
    padded = model.op("PADV2", [pooled, pads, one], (1, 5, 5, 32), type="INT8", version=2)
    padded.quantization = sign.quantization
    source = model.finish(quantized(model, model.conv(padded, WEIGHTS), padded, WEIGHTS, 4, -3))
    result, _ = binarized(rewritten(source, read_as_signs))
    assert op_names(result)[-2:] == ["LceBconv2d", "QUANTIZE"]
    assert_same_values(source, result)


@pytest.mark.parametrize("layer", [same, padded])
def test_a_sign_that_a_float_model_rounds_to_a_grid_is_one_with_other_weights(layer: Layer) -> None:
    model = FloatModel()
    sign = model.sign(model.input(1, 8, 8, 32))
    levels = model.op("QUANTIZE", [sign], sign.dims, type="INT8")
    levels.quantization = parameters(2 / 255, -1)
    built, _ = binarized(model, layer(model, model.op("DEQUANTIZE", [levels], sign.dims, version=2)))
    assert "CONV_2D" not in op_names(built)


@pytest.mark.parametrize(("positive", "at_border"), [(0.5, 1), (0.95, 4)])
def test_zeros_around_a_sign_of_an_uneven_grid_take_borders_off_by_their_weights(
    positive: float, at_border: int
) -> None:
    rng = np.random.default_rng(0)
    grid = (float(np.nextafter(np.float32(2 / 255), np.float32(0))), -1)  # its levels include 1.004 and -0.996
    model = Int8Model()
    x = model.sign8(model.input8((1 / 16, 0), 1, 6, 6, 256), "where", grid)
    weights = np.where(rng.random((16, 3, 3, 256)) < positive, 1.0, -1.0)
    y = model.conv8(x, weights, np.zeros(16), (1.5, 0), same=True, activation="none")
    source = model.finish(y)
    converted, report = litebnn.convert_tflite(source, return_report=True)
    assert report.layers[0].binary
    levels = rng.integers(-128, 128, (8, 6, 6, 256)).astype(np.int8)
    expected, actual = (litebnn.Interpreter(model).predict(levels).astype(int) for model in (source, converted))
    difference = np.abs(actual - expected)
    assert np.max(difference[:, 1:-1, 1:-1]) <= 1
    assert np.max(difference) <= at_border


@pytest.mark.parametrize("shape", [(1, 64), (2, 3, 64)])
@pytest.mark.parametrize("values", [(0.0, 1.0), (-2.0, 2.0), (1.0, 0.0)])
def test_a_product_of_two_values_with_a_matrix_is_binary(values: tuple[float, float], shape: tuple[int, ...]) -> None:
    rng = np.random.default_rng(0)
    model = FloatModel()
    x = model.two_values(model.input(*shape), *values)
    matrix = np.ascontiguousarray(sign_weights(rng, 10, 64).T)
    product = model.op("BATCH_MATMUL", [x, model.const(matrix)], (*shape[:-1], 10), adj_x=False, adj_y=False)
    source = model.finish(product)
    converted, report = litebnn.convert_tflite(source, return_report=True)
    assert report.layers[0].binary, str(report)
    assert_same_values(source, read_model(converted))


def test_a_product_that_is_a_float_dense_layer_in_the_end_keeps_its_axes() -> None:
    """The input of the layer takes the values -2 and 2, but is padded with zeros, so the layer stays float."""
    rng = np.random.default_rng(0)
    model = FloatModel()
    x = model.pad(model.two_values(model.input(2, 3, 4, 64), -2.0, 2.0), [(1, 0), (0, 0)], 0.0)
    matrix = np.ascontiguousarray(sign_weights(rng, 10, 64).T)
    product = model.op("BATCH_MATMUL", [x, model.const(matrix)], (2, 4, 4, 10), adj_x=False, adj_y=False)
    binary = model.conv(model.sign(model.input(2, 3, 3, 32)), sign_weights(rng, 8, 3, 3, 32))
    source = model.finish(product, binary)
    converted, report = litebnn.convert_tflite(source, return_report=True)
    assert [layer.binary for layer in report.layers] == [False, True]
    assert_same_values(source, read_model(converted))


def test_a_product_of_two_values_with_other_numbers_stays_and_says_why() -> None:
    model = FloatModel()
    x, ones = model.two_values(model.input(1, 64)), np.ones((64, 10))
    zero = np.where(np.arange(64)[:, None] == 3, 0, ones)
    for source, matrix, reason in (
        (x, model.const(zero), "weights are 0"),
        (x, model.input(64, 10), "both inputs are computed when the model runs"),
    ):
        built, notes = binarized(model, model.op("BATCH_MATMUL", [source, matrix], (1, 10), adj_x=False, adj_y=False))
        assert "BATCH_MATMUL" in op_names(built)
        assert any(reason in each for each in notes.layers[-1].reasons), notes.layers[-1].reasons
