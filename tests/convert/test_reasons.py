"""Tests every reason that a report gives for a layer that is not binary, each with a model for which the reason is
true."""

from collections.abc import Callable

import numpy as np
import pytest

import litebnn
from litebnn.analysis.quantization import parameters
from litebnn.flatbuffer import read_model
from litebnn.graph import OpCode, Tensor
from litebnn.rules.build.int8 import int8_constant
from tests.support.float_models import FloatModel, dyadic, sign_weights
from tests.support.quantized_models import USUAL_GRID, Int8Model
from tests.support.reasons import check_reasons

Build = Callable[[Int8Model], Tensor]
RNG = np.random.default_rng(0)
WEIGHTS = sign_weights(RNG, 8, 3, 3, 32)
SHAPE = (1, 6, 6, 32)


def image(model: FloatModel) -> Tensor:
    return model.input(*SHAPE)


def levels(model: Int8Model) -> Tensor:
    return model.input8((1 / 16, 3), *SHAPE)


def conv(model: FloatModel, x: Tensor) -> Tensor:
    return model.conv(x, sign_weights(RNG, 8, 3, 3, x.channels))


def flag(model: FloatModel, x: Tensor) -> Tensor:
    """Appends a comparison, whose result is cast to 0 and 1."""
    return model.two_values(x)


def depthwise(model: FloatModel, x: Tensor, **quantized: object) -> Tensor:
    weights = sign_weights(RNG, 1, 3, 3, x.channels, alpha=False)
    inputs = [x, model.const(weights), model.const(np.zeros(x.channels))]
    y = model.op("DEPTHWISE_CONV_2D", inputs, x.dims, depth_multiplier=1, fused_activation_function=0)
    if x.type == "INT8":
        op = model.graph.ops[-1]
        op.code = OpCode(op.name, "", 3)
        kernel = int8_constant("kernel", weights, np.full(x.channels, 1 / 127), axis=3)
        counts = model.const(np.zeros(x.channels), np.int32)
        counts.quantization = parameters(np.full(x.channels, (x.per_tensor_quantization or (1.0, 0))[0] / 127))
        model.graph.set_input(op, 1, kernel)
        model.graph.set_input(op, 2, counts)
        y.type, y.quantization = "INT8", parameters(0.5, 3)
    return y


def matmul(model: FloatModel, x: Tensor) -> Tensor:
    rows = model.reshape(x, 1, 36 * 32) if len(x.dims) == 4 else x
    matrix = model.const(sign_weights(RNG, rows.channels, 5, alpha=False))
    return model.op("BATCH_MATMUL", [rows, matrix], (1, 5), adj_x=False, adj_y=False)


def gated(model: Int8Model) -> Tensor:
    x = image(model)
    return conv(model, model.elementwise("MUL", flag(model, x), x))


def scaled(model: FloatModel, x: Tensor) -> Tensor:
    return model.elementwise("MUL", x, model.const(np.arange(1, 33) / 4))


def levels_and_numbers(model: Int8Model) -> Tensor:
    """Appends a sum of a tensor with few levels and a tensor of floats. The sum can have any value."""
    x = image(model)
    rounded = model.op("ROUND", [model.elementwise("MUL", x, model.const(3))], x.dims)
    return conv(model, model.elementwise("ADD", rounded, x))


def nothing_and_numbers(model: Int8Model) -> Tensor:
    x = image(model)
    return conv(model, model.elementwise("ADD", nothing(model, x), x))


def nothing(model: FloatModel, x: Tensor) -> Tensor:
    """Appends a tensor that is always 0."""
    return model.elementwise("ROUND", model.elementwise("RELU", model.elementwise("MINIMUM", x, model.const(0.2))))


def far_sign(model: Int8Model) -> Tensor:
    """Appends a sign with many ops between it and the layer. They are enclosed by two reshapes that cannot be
    applied to packed bits.
    """
    x = model.elementwise("ELU", flag(model, image(model)))
    for _ in range(4):
        x = model.reshape(model.transpose(x, 0, 2, 1, 3), *SHAPE)
    return conv(model, x)


def halved(model: FloatModel, x: Tensor) -> Tensor:
    return model.elementwise("MUL", x, model.const(0.5))


def opposite_pooled(model: Int8Model) -> Tensor:
    return conv(model, model.max_pool(model.elementwise("MUL", model.sign(image(model)), model.const(-2)), 2, 2))


def product_of_two(model: Int8Model) -> Tensor:
    """Appends the product of a sign with a second input of the model."""
    rows = model.sign(model.input(1, 4, 32))
    return model.op("BATCH_MATMUL", [rows, model.input(1, 32, 5)], (1, 4, 5), adj_x=False, adj_y=False)


def lost_zeros(model: Int8Model) -> Tensor:
    """Appends the form sign(x) + (x == 0). No calibration sample contains a zero, so the scale of the second addend
    is meaningless.
    """
    x = levels(model)
    sign = model.quantize8(model.elementwise("SIGN", model.dequantize8(x)), USUAL_GRID)
    is_zero = model.elementwise("EQUAL", x, int8_constant("zero", np.zeros(()), 1 / 16, 3), type="BOOL")
    added = model.quantize8(model.elementwise("CAST", is_zero), (1e-8, 0))
    signs = model.add8(sign, added, USUAL_GRID)
    return model.conv8(signs, WEIGHTS, np.zeros(8), (0.5, 3), same=False, activation="none")


def pooled8(model: Int8Model) -> Tensor:
    return model.pool8(model.sign8(levels(model), "where", USUAL_GRID))


FORMS: list[tuple[str, Build]] = [
    ("its input is not the output of a sign", lambda m: conv(m, image(m))),
    ("its input is not the output of a sign", lambda m: conv(m, m.concatenated(m.sign(image(m)), m.graph.inputs[0]))),
    ("CONCATENATION joins signs with other", lambda m: conv(m, m.concatenated(m.sign(image(m)), flag(m, image(m))))),
    ("its input is sign(x), which is 0 where x is 0", lambda m: conv(m, m.elementwise("SIGN", image(m)))),
    ("its input takes several levels", lambda m: conv(m, m.op("ROUND", [image(m)], SHAPE))),
    ("ADD stands between the sign and it", levels_and_numbers),
    ("ADD stands between the sign and it", nothing_and_numbers),
    ("MUL stands between the sign and it", lambda m: conv(m, scaled(m, flag(m, image(m))))),
    ("MUL stands between the sign and it", lambda m: conv(m, scaled(m, m.elementwise("SIGN", image(m))))),
    (
        "MUL stands between the sign and it",
        lambda m: conv(m, m.elementwise("MUL", flag(m, image(m)), m.graph.inputs[0])),
    ),
    ("its input is sign(x), which is 0 where x is 0", lost_zeros),
    ("its input takes several levels", lambda m: conv(m, halved(m, m.op("ROUND", [image(m)], SHAPE)))),
    ("both inputs are computed when the model runs", product_of_two),
    ("its weights are not ±alpha", lambda m: m.conv(m.sign(image(m)), RNG.standard_normal((8, 3, 3, 32)))),
    (
        "72 of its 2,304 weights are 0 (ternary or pruned)",
        lambda m: m.conv(m.sign(image(m)), WEIGHTS * (np.arange(32) > 0)),
    ),
    ("its weights are all zero", lambda m: m.conv(m.sign(image(m)), 0 * WEIGHTS)),
    ("its groups have 16 channels", lambda m: m.conv(m.sign(image(m)), WEIGHTS[..., :16])),
    ("is padded with 0.5, which is neither", lambda m: conv(m, m.pad(m.sign(image(m)), [(1, 1), (1, 1)], 0.5))),
    ("takes 1 and 3 and is padded with 0", lambda m: conv(m, m.pad(m.two_values(image(m), 1, 3), [(1, 1), (1, 1)]))),
    ("of which it takes maxima against a sign", opposite_pooled),
    ("ELU stands between the sign and it", far_sign),
    ("its input is 0, whatever", lambda m: conv(m, nothing(m, image(m)))),
    ("there is no binary DEPTHWISE_CONV_2D", lambda m: depthwise(m, m.sign(image(m)))),
    ("there is no binary DEPTHWISE_CONV_2D", lambda m: depthwise(m, flag(m, image(m)))),
    ("there is no binary DEPTHWISE_CONV_2D", lambda m: depthwise(m, pooled8(m))),
    (
        "there is no binary DEPTHWISE_CONV_2D",
        lambda m: depthwise(m, m.op("ROUND", [m.elementwise("RELU_N1_TO_1", image(m))], SHAPE)),
    ),
    (
        "there is no binary DEPTHWISE_CONV_2D",
        lambda m: depthwise(m, m.pad8(m.sign8(levels(m), "where", USUAL_GRID), None)),
    ),
]


@pytest.mark.parametrize(("reason", "build"), FORMS)
def test_a_reason_and_a_model_of_which_it_is_true(reason: str, build: Build) -> None:
    model = Int8Model()
    source = model.finish(build(model))
    with pytest.warns(UserWarning, match="no binary layer"):
        _, report = litebnn.convert_tflite(source, return_report=True)
    [found] = report.layers[0].reasons
    assert reason in found
    rng = np.random.default_rng(1)
    tensors = read_model(source).graphs[0].inputs
    inputs = [
        rng.integers(-128, 128, t.shape).astype(np.int8) if t.type == "INT8" else dyadic(rng, *t.shape, largest=16)
        for t in tensors
    ]
    check_reasons(source, report, inputs)


def shuffled(model: FloatModel) -> Tensor:
    dense = model.dense(model.sign(model.input(1, 64)), sign_weights(RNG, 8, 64))
    model.graph.ops[-1].options.weights_format = 1
    return dense


def of_unknown_rows(model: FloatModel) -> Tensor:
    x = model.sign(model.input(1, 1, 64, signature=(-1, -1, 64)))
    weights = model.const(sign_weights(RNG, 8, 64))
    return model.op("FULLY_CONNECTED", [x, weights, None], (-1, -1, 8), fused_activation_function=0, keep_num_dims=True)


def with_tanh(model: FloatModel) -> Tensor:
    y = model.conv(model.sign(image(model)), WEIGHTS)
    model.graph.ops[-1].options.fused_activation_function = 4
    return y


def with_a_bias_of_the_models_input(model: FloatModel) -> Tensor:
    y = model.conv(model.sign(image(model)), WEIGHTS)
    model.graph.set_input(model.graph.ops[-1], 2, model.input(8))
    return y


def with_weights_of_the_models_input(model: FloatModel) -> Tensor:
    return model.conv(model.sign(image(model)), model.input(8, 3, 3, 32))


def in_space_to_batch(model: FloatModel, *, same: bool, stride: int) -> Tensor:
    x = model.space_to_batch(model.sign(image(model)), [2, 2], [(2, 2), (2, 2)])
    y = model.conv(x, WEIGHTS, same=same, stride=(stride, stride))
    return model.batch_to_space(y, [2, 2], [(0, 0), (0, 0)])


def transposed(
    model: FloatModel, taps: tuple[int, int] = (3, 3), stride: tuple[int, int] = (2, 2), channels: int = 32
) -> Tensor:
    return model.transposed_conv(model.sign(image(model)), sign_weights(RNG, 8, *taps, channels), stride=stride)


STRUCTURES: list[tuple[str, Callable[[FloatModel], Tensor]]] = [
    ("its weights are shuffled", shuffled),
    ("more than one dimension of its input is unknown", of_unknown_rows),
    ("its fused activation is not one of ReLU, ReLU6, ReLU1", with_tanh),
    ("is not a float constant", with_a_bias_of_the_models_input),
    ("its weights are not a float constant", with_weights_of_the_models_input),
    ("space-to-batch pair with a stride", lambda m: in_space_to_batch(m, same=False, stride=2)),
    ("space-to-batch pair around a SAME convolution", lambda m: in_space_to_batch(m, same=True, stride=1)),
    ("its strides 2 and 1 differ", lambda m: transposed(m, stride=(2, 1))),
    ("its filter [1, 3] is smaller than its stride 2", lambda m: transposed(m, taps=(1, 3))),
    ("its filter [8, 3, 3, 16] is not one for 32 input channels", lambda m: transposed(m, channels=16)),
    ("does not divide its 32 input channels into groups", lambda m: m.conv(m.sign(image(m)), WEIGHTS[..., :24])),
]


@pytest.mark.parametrize(("reason", "build"), STRUCTURES)
def test_the_reason_of_a_layer_that_is_no_plain_convolution_of_a_sign(
    reason: str, build: Callable[[FloatModel], Tensor]
) -> None:
    model = FloatModel()
    with pytest.warns(UserWarning, match="no binary layer"):
        _, report = litebnn.convert_tflite(model.finish(build(model)), return_report=True)
    [found] = report.layers[0].reasons
    assert reason in found


def detached(model: FloatModel, x: Tensor, smooth: Tensor) -> Tensor:
    """Appends (sign - smooth) + smooth, as straight-through estimators are exported."""
    return model.elementwise("ADD", model.elementwise("SUB", model.elementwise("SIGN", x), smooth), smooth)


def clipped_estimator(model: FloatModel, x: Tensor) -> Tensor:
    return detached(
        model, x, model.elementwise("MINIMUM", model.elementwise("MAXIMUM", x, model.const(-1.5)), model.const(1.5))
    )


def polynomial_estimator(model: FloatModel, x: Tensor) -> Tensor:
    """Appends Bi-Real Net's estimator, a parabola that a mask keeps below one."""
    mask = model.op("CAST", [model.elementwise("LESS", x, model.const(1), type="BOOL")], x.dims)
    parabola = model.elementwise("ADD", model.elementwise("MUL", x, x), model.elementwise("MUL", x, model.const(2)))
    others = model.elementwise("SUB", model.const(np.ones(())), mask)
    return detached(model, x, model.elementwise("ADD", model.elementwise("MUL", parabola, mask), others))


def halved_sign(model: FloatModel, x: Tensor) -> Tensor:
    return halved(model, model.elementwise("SIGN", x))


def sign_of_heaviside(model: FloatModel, x: Tensor) -> Tensor:
    """Appends 2 · heaviside(x, 0.5) - 1."""
    above, zero = (model.elementwise(name, x, model.const(0), type="BOOL") for name in ("GREATER", "EQUAL"))
    step = model.op("SELECT_V2", [above, model.const(1), model.const(0)], x.dims)
    step = model.op("SELECT_V2", [zero, model.const(0.5), step], x.dims)
    return model.elementwise("SUB", model.elementwise("MUL", step, model.const(2)), model.const(1))


def scaled_by_samples(model: FloatModel, x: Tensor) -> Tensor:
    mean = model.op(
        "MEAN", [model.elementwise("ABS", x), model.const([1, 2, 3], np.int32)], (1, 1, 1, 1), keep_dims=True
    )
    return model.elementwise("MUL", model.elementwise("SIGN", x), mean)


def padded_conv(model: FloatModel, x: Tensor) -> Tensor:
    return conv(model, model.pad(x, [(1, 1), (1, 1)]))


def strided_conv(model: FloatModel, x: Tensor) -> Tensor:
    return model.conv(model.pad(x, [(1, 1), (1, 1)]), sign_weights(RNG, 8, 3, 3, x.channels), stride=(2, 2))


def flattened(model: FloatModel, x: Tensor) -> Tensor:
    return model.dense(model.reshape(x, 1, int(np.prod(x.dims))), sign_weights(RNG, 8, int(np.prod(x.dims))))


def pooled(model: FloatModel, x: Tensor) -> Tensor:
    return conv(model, model.max_pool(x, 2, 2))


def joined(model: FloatModel, x: Tensor) -> Tensor:
    other = model.elementwise("SIGN", model.elementwise("ADD", model.graph.inputs[0], model.const(0.25)))
    return conv(model, model.concatenated(x, other))


def shuffled_channels(model: FloatModel, x: Tensor) -> Tensor:
    grouped = model.transpose(model.reshape(x, 6, 6, 2, 16), 0, 1, 3, 2)
    return conv(model, model.reshape(grouped, *SHAPE))


QUANTIZERS = (
    *(clipped_estimator, polynomial_estimator, halved_sign, sign_of_heaviside, scaled_by_samples),
    lambda model, x: model.elementwise("SIGN", x),
)
READERS = (conv, padded_conv, strided_conv, flattened, pooled, joined, shuffled_channels, matmul)
MIXED = {(halved_sign, joined), (scaled_by_samples, joined), (scaled_by_samples, pooled)}


@pytest.mark.filterwarnings("ignore:no binary layer")
@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("quantizer", QUANTIZERS)
def test_where_the_option_is_enough_it_is_the_only_reason(quantizer, reader) -> None:
    model = FloatModel()
    source = model.finish(reader(model, quantizer(model, image(model))))
    _, report = litebnn.convert_tflite(source, return_report=True)
    _, given = litebnn.convert_tflite(source, return_report=True, assume_nonzero=True, verify=False)
    [layer], [with_option] = report.layers, given.layers
    assert with_option.binary == ((quantizer, reader) not in MIXED)
    assert any("assume_nonzero" in reason for reason in layer.reasons) == with_option.binary
    assert not layer.binary
    assert len(layer.reasons) == 1


@pytest.mark.filterwarnings("ignore:no binary layer")
@pytest.mark.parametrize("reader", READERS)
def test_the_option_is_no_advice_where_it_would_not_help(reader) -> None:
    model = FloatModel()
    y = reader(model, clipped_estimator(model, image(model)))
    weights = model.graph.ops[-1].input(1)
    model.graph.set_input(model.graph.ops[-1], 1, model.const(RNG.standard_normal(weights.shape)))
    _, report = litebnn.convert_tflite(model.finish(y), return_report=True)
    assert list(report.layers[0].reasons) == ["its weights are not ±alpha in each output channel"]


def probabilities(model: FloatModel, x: Tensor) -> Tensor:
    return model.elementwise("ROUND", model.elementwise("RELU_0_TO_1", model.op("SOFTMAX", [x], x.dims, beta=1.0)))


def rounded_levels(model: FloatModel, x: Tensor) -> Tensor:
    return model.elementwise("ROUND", model.elementwise("MUL", model.elementwise("RELU_0_TO_1", x), model.const(3)))


@pytest.mark.filterwarnings("ignore:no binary layer")
@pytest.mark.parametrize("kind", ["BATCH_MATMUL", "FULLY_CONNECTED"])
@pytest.mark.parametrize("assume_nonzero", [False, True])
@pytest.mark.parametrize("left", [halved_sign, clipped_estimator, probabilities, rounded_levels, FloatModel.sign, flag])
def test_a_product_of_two_activations_says_so(left, assume_nonzero: bool, kind: str) -> None:
    model = FloatModel()
    rows, columns = left(model, model.input(4, 32)), model.elementwise("SIGN", model.input(5, 32))
    if kind == "FULLY_CONNECTED":
        y = model.op(kind, [rows, columns, None], (4, 5), fused_activation_function=0)
    else:
        y = model.op(kind, [rows, columns], (4, 5), adj_x=False, adj_y=True)
    _, report = litebnn.convert_tflite(model.finish(y), return_report=True, assume_nonzero=assume_nonzero, verify=False)
    assert list(report.layers[0].reasons) == ["both inputs are computed when the model runs"]
