"""Tests source files that TensorFlow's converter has quantized."""

from typing import Any

import numpy as np
import pytest

import litebnn
from litebnn.flatbuffer import read_model, write_model
from litebnn.graph import Array, constant
from tests.needs import imported
from tests.support.float_models import FloatModel, sign_weights
from tests.support.quantized_models import dequantized_weights, with_blocks

pytestmark = pytest.mark.usefixtures("library")
KINDS = ("int8", "int8_interface", "int16x8", "dynamic_range", "float16")
FORMS = ("ste_sign", "where")
BLOCK_FORMS = [(type, size) for type in ("INT4", "INT2") for size in (32, 64, 128, 256)]


def where_sign(x: Any) -> Any:
    import tensorflow as tf

    return tf.where(x >= 0, tf.ones_like(x), -tf.ones_like(x))


def network(form: str) -> Any:
    """A network with float and binary convolutions padded with zeros or ones, a binary dense layer and softmax."""
    keras, larq = imported("tf_keras", "larq"), imported("larq", "larq")
    layers = keras.layers
    keras.utils.set_random_seed(0)
    quantizers: dict[str, Any] = {"kernel_quantizer": "ste_sign", "kernel_constraint": "weight_clip"}

    def sign(x: Any) -> Any:
        return larq.quantizers.SteSign()(x) if form == "ste_sign" else where_sign(x)

    def conv(x: Any, **options: Any) -> Any:
        x = larq.layers.QuantConv2D(32, 3, input_quantizer=sign, use_bias=False, **quantizers, **options)(x)
        return layers.BatchNormalization(momentum=0.5)(x)

    inputs = keras.Input((10, 10, 3), batch_size=1)
    x = layers.BatchNormalization()(layers.Conv2D(32, 3, use_bias=False)(inputs))
    x = layers.MaxPool2D(2)(layers.ReLU()(conv(x, padding="same")))
    # If the form is `where`, the network is also quantized to int16, and pads only with zeros. The runtime refuses
    # TensorFlow's int16 PADV2 with ones.
    x = conv(conv(x, padding="same", pad_values=0 if form == "where" else 1))
    x = larq.layers.QuantDense(16, input_quantizer=sign, **quantizers)(layers.Flatten()(x))
    model = keras.Model(inputs, layers.Dense(10, activation="softmax")(layers.BatchNormalization()(x)))
    rng = np.random.default_rng(0)
    for layer in model.layers:
        if isinstance(layer, layers.BatchNormalization):
            gamma, beta, mean, variance = layer.get_weights()
            shifts = (v + rng.uniform(-0.3, 0.3, v.shape) for v in (gamma, beta, mean))
            layer.set_weights([*shifts, variance * rng.uniform(20, 100, variance.shape)])
    return model


def samples(count: int) -> Array:
    return np.random.default_rng(1).standard_normal((count, 10, 10, 3)).astype(np.float32)


def quantized(model: Any, kind: str) -> bytes:
    tf = imported("tensorflow", "larq")
    converter = tf.lite.TFLiteConverter.from_keras_model(model)
    converter.optimizations = [tf.lite.Optimize.DEFAULT]
    if kind == "float16":
        converter.target_spec.supported_types = [tf.float16]
    elif kind != "dynamic_range":
        ops = tf.lite.OpsSet.TFLITE_BUILTINS_INT8
        if kind == "int16x8":
            ops = tf.lite.OpsSet.EXPERIMENTAL_TFLITE_BUILTINS_ACTIVATIONS_INT16_WEIGHTS_INT8
        converter.representative_dataset = lambda: ([sample[None]] for sample in samples(8))
        converter.target_spec.supported_ops = [ops, tf.lite.OpsSet.TFLITE_BUILTINS]
        if kind == "int8_interface":
            converter.inference_input_type = converter.inference_output_type = tf.int8
    return bytes(converter.convert())


@pytest.fixture(scope="module", params=FORMS)
def model(request: pytest.FixtureRequest) -> Any:
    return request.param, network(request.param)


@pytest.mark.deep
@pytest.mark.parametrize("kind", KINDS)
def test_a_quantized_file_becomes_binary_and_computes_what_it_did(model: Any, kind: str) -> None:
    form, network = model
    if (form, kind) == ("ste_sign", "int16x8"):
        pytest.skip("TensorFlow pads int16 with a float one, which the runtime refuses")
    source = quantized(network, kind)
    converted, report = litebnn.convert_tflite(source, return_report=True)
    assert [layer.binary for layer in report.layers] == [False, True, True, True, True, False]
    assert all(layer.binary or layer.reasons for layer in report.layers)
    x = samples(4)
    if kind == "int8_interface":
        scale, zero_point = read_model(source).graphs[0].inputs[0].per_tensor_quantization or (1.0, 0)
        x = np.clip(np.round(x / scale) + zero_point, -128, 127).astype(np.int8)
    expected, actual = (litebnn.Interpreter(each).predict(x).astype(np.float64) for each in (source, converted))
    step = {"int8": 1 / 256, "int8_interface": 1, "int16x8": 1 / 32768, "dynamic_range": 0.05, "float16": 1e-6}[kind]
    assert np.max(np.abs(actual - expected)) <= step


def trained_with_quantization() -> Any:
    """A network with a binary convolution between fake-quantized layers. Their activations are fake-quantized, and
    also their weights, by channel.
    """
    tf, keras, larq = (imported(name, "larq") for name in ("tensorflow", "tf_keras", "larq"))
    layers = keras.layers
    keras.utils.set_random_seed(0)

    class Fake(layers.Layer):  # type: ignore[misc]
        def __init__(self, low: float, high: float) -> None:
            super().__init__()
            self.limits = low, high

        def call(self, x: Any) -> Any:
            return tf.quantization.fake_quant_with_min_max_vars(x, *self.limits)

    class Conv(layers.Conv2D):  # type: ignore[misc]
        def call(self, x: Any) -> Any:
            largest = tf.reduce_max(tf.abs(self.kernel), axis=[0, 1, 2])
            kernel = tf.quantization.fake_quant_with_min_max_vars_per_channel(
                self.kernel, -largest, largest, narrow_range=True
            )
            return tf.nn.conv2d(x, kernel, 1, "VALID") + self.bias

    class Dense(layers.Dense):  # type: ignore[misc]
        def call(self, x: Any) -> Any:
            return tf.matmul(x, tf.quantization.fake_quant_with_min_max_vars(self.kernel, -0.5, 0.5, narrow_range=True))

    inputs = keras.Input((10, 10, 3), batch_size=1)
    x = Fake(0, 4)(layers.ReLU()(Conv(32, 3, bias_initializer="random_normal")(Fake(-2, 2)(inputs))))
    x = larq.layers.QuantConv2D(
        32, 3, input_quantizer="ste_sign", kernel_quantizer="ste_sign", kernel_constraint="weight_clip"
    )(x)
    x = Fake(-3, 3)(layers.GlobalAveragePooling2D()(Fake(-100, 100)(x)))
    return keras.Model(inputs, Fake(0, 1)(layers.Softmax()(Fake(-4, 4)(Dense(10)(x)))))


def test_a_model_trained_with_quantization_is_int8_from_input_to_output() -> None:
    tf = imported("tensorflow", "larq")
    source = bytes(tf.lite.TFLiteConverter.from_keras_model(trained_with_quantization()).convert())
    converted, report = litebnn.convert_tflite(
        source, return_report=True, inference_input_type="int8", inference_output_type="int8"
    )
    graph = read_model(converted).graphs[0]
    own = {op.name for op in graph.ops if op.name.startswith("Lce")}
    assert own == {"LceQuantize", "LceBconv2d"}
    types = {op.name: op.output.type for op in graph.ops if op.name not in own}
    assert set(types) >= {"CONV_2D", "MEAN", "FULLY_CONNECTED", "SOFTMAX"}
    assert set(types.values()) == {"INT8"}
    assert [layer.output for layer in report.layers] == ["INT8"] * 3
    interpreter = litebnn.Interpreter(converted)
    [(scale, zero_point)], [(out_scale, out_zero_point)] = (
        interpreter.input_quantization,
        interpreter.output_quantization,
    )
    x = samples(4)
    levels = np.clip(np.round(x / scale) + zero_point, -128, 127).astype(np.int8)
    actual = (interpreter.predict(levels).astype(np.float32) - out_zero_point) * out_scale
    assert np.max(np.abs(actual - litebnn.Interpreter(source).predict(x))) <= 2 * out_scale


def dense_network() -> bytes:
    """A network of a convolution and four dense layers. The first two dense layers are binary, the others are not."""
    rng = np.random.default_rng(0)
    model = FloatModel()
    x = model.conv(model.input(2, 3, 3, 3), rng.standard_normal((64, 3, 3, 3)).astype(np.float32))
    x = model.dense(model.sign(model.reshape(x, 2, 64)), np.sign(sign_weights(rng, 256, 64)), np.full(256, 0.5))
    x = model.dense(model.sign(x), sign_weights(rng, 512, 256), rng.standard_normal(512).astype(np.float32))
    x = model.dense(x, (rng.standard_normal((256, 512)) / 16).astype(np.float32), activation="relu")
    return model.finish(model.dense(x, rng.standard_normal((10, 256)).astype(np.float32)))


def dense_samples() -> Array:
    return np.random.default_rng(1).standard_normal((2, 3, 3, 3)).astype(np.float32)


def in_float(source: bytes) -> bytes:
    """The model with its blockwise quantized weights replaced by their float values."""
    model = read_model(source)
    for op in list(model.graphs[0].ops):
        if op.name == "FULLY_CONNECTED" and op.input(1).details is not None:
            values = dequantized_weights(op)
            model.graphs[0].set_input(op, 1, constant(op.input(1).name, values))
    return write_model(model)


@pytest.mark.parametrize(("type", "size"), BLOCK_FORMS)
def test_binary_layers_become_binary_and_the_others_keep_their_blocks(type: str, size: int) -> None:
    source = with_blocks(dense_network(), type, size)
    converted, report = litebnn.convert_tflite(source, return_report=True)
    assert [layer.binary for layer in report.layers] == [False, True, True, False, False]
    kept = [op for op in read_model(converted).ops() if op.name == "FULLY_CONNECTED" and op.input(1).details]
    before = [op for op in read_model(source).ops() if op.name == "FULLY_CONNECTED" and op.input(1).details][
        -len(kept) :
    ]
    assert len(kept) == 2
    for old, new in zip(before, kept, strict=True):
        assert new.input(1).type == "INT4"
        np.testing.assert_array_equal(dequantized_weights(new), dequantized_weights(old))
    warned = [warning for warning in report.warnings if "INT2 weights have a scale for each block" in warning]
    assert len(warned) == (2 if type == "INT2" else 0)


@pytest.mark.parametrize(("type", "size"), BLOCK_FORMS)
def test_outputs_are_those_of_the_same_values_in_float(type: str, size: int) -> None:
    """Outputs may differ by about a hundredth of the largest output, because some layers quantize their inputs at
    run time.
    """
    source = with_blocks(dense_network(), type, size)
    expected = litebnn.Interpreter(in_float(source)).predict(dense_samples())
    converted = litebnn.convert_tflite(source)
    for runner in (litebnn.Interpreter, litebnn.CompiledModel):
        actual = runner(converted).predict(dense_samples())
        assert np.max(np.abs(actual - expected)) <= 0.03 * np.max(np.abs(expected))


def test_verify_runs_both() -> None:
    _, report = litebnn.convert_tflite(with_blocks(dense_network(), "INT4", 32), verify=True, return_report=True)
    assert report.verification is not None


def test_tensors_get_other_numbers_and_scales_go_with_them() -> None:
    source = with_blocks(dense_network(), "INT4", 64)
    model = read_model(source)
    model.graphs[0].tensors.reverse()
    turned = write_model(model)
    for before, after in zip(read_model(source).ops(), read_model(turned).ops(), strict=True):
        if before.name == "FULLY_CONNECTED" and before.input(1).details is not None:
            np.testing.assert_array_equal(dequantized_weights(after), dequantized_weights(before))


@pytest.mark.filterwarnings("ignore:no binary layer")
def test_a_file_without_a_binary_layer_stays_as_it_is() -> None:
    rng = np.random.default_rng(0)
    model = FloatModel()
    source = with_blocks(
        model.finish(model.dense(model.input(1, 64), rng.standard_normal((8, 64)).astype(np.float32))), "INT4", 32
    )
    assert litebnn.convert_tflite(source) == source


def test_weights_whose_blocks_differ_in_a_channel_are_not_binary() -> None:
    rng = np.random.default_rng(0)
    model = FloatModel()
    weights = np.sign(sign_weights(rng, 8, 64)) * np.repeat([[1.0, 2.0]], 32, axis=1)
    source = with_blocks(
        model.finish(model.dense(model.sign(model.input(1, 64)), weights.astype(np.float32))), "INT4", 32
    )
    with pytest.warns(UserWarning, match="no binary layer"):
        _, report = litebnn.convert_tflite(source, return_report=True)
    assert list(report.layers[0].reasons) == ["its weights are not ±alpha in each output channel"]
