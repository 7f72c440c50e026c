"""Tests int8 layers around binary layers, from quantization-aware training, from post-training quantization, and from
int8 source files."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import litebnn
from litebnn.analysis.quantization import parameters
from litebnn.flatbuffer import read_model, write_model
from litebnn.graph import Array, Tensor
from litebnn.rules.build.int8 import int8_constant
from tests.support.float_models import FloatModel, op_names, sign_weights

GOLDEN = Path(__file__).parents[1] / "golden"
RESIDUAL = GOLDEN / "residual.float.tflite"


def types(model: bytes) -> dict[str, str]:
    """For each builtin op's name, the type of the op's output."""
    return {op.name: op.output.type for op in read_model(model).graphs[0].ops if not op.name.startswith("Lce")}


def samples(count: int = 4) -> list[Array]:
    return list(np.load(GOLDEN / "residual.npz")["input"].repeat(count, axis=0)[:, None])


def test_a_trained_quantization_becomes_int8_all_through() -> None:
    converted = litebnn.convert_tflite(GOLDEN / "int8_qat.float.tflite")
    assert types(converted) == {"QUANTIZE": "INT8", "ADD": "INT8", "DEQUANTIZE": "FLOAT32"}
    graph = read_model(converted).graphs[0]
    assert [op.output.type for op in graph.ops if op.name == "LceBconv2d"] == ["INT8", "INT8"]
    peer = read_model((GOLDEN / "int8_qat.lce.tflite").read_bytes()).graphs[0]
    for ours, theirs in zip(graph.ops, peer.ops, strict=True):
        assert ours.name == theirs.name
        assert ours.output.per_tensor_quantization == theirs.output.per_tensor_quantization


@pytest.mark.parametrize("dataset", [samples(), lambda: iter(samples()), [[sample] for sample in samples()]])
def test_after_training_the_float_rest_becomes_int8(dataset: Any) -> None:
    converted = litebnn.convert_tflite(RESIDUAL, representative_dataset=dataset)
    assert set(types(converted)) == {"QUANTIZE", "ADD", "DEQUANTIZE"}
    assert types(converted)["ADD"] == "INT8"
    x = samples()[0]
    expected = litebnn.Interpreter(RESIDUAL).predict(x)
    actual = litebnn.Interpreter(converted).predict(x)
    error = np.sqrt(np.mean((expected - actual) ** 2) / np.mean(expected**2))
    assert error < 0.25


def digits_like() -> tuple[FloatModel, Tensor]:
    """A model of float convolution, pooling, binary convolution, dense layer and softmax."""
    rng = np.random.default_rng(0)
    model = FloatModel()
    x = model.conv(model.input(1, 12, 12, 3), rng.standard_normal((32, 3, 3, 3)).astype(np.float32) / 5)
    x = model.conv(model.sign(model.max_pool(x, 2, 2)), sign_weights(rng, 32, 3, 3, 32) / 32, activation="relu")
    x = model.reshape(x, 1, 9 * 32)
    x = model.dense(x, rng.standard_normal((10, 9 * 32)).astype(np.float32) / 20, rng.standard_normal(10))
    return model, model.op("SOFTMAX", [x], (1, 10), beta=1.0)


def test_a_whole_network_becomes_int8() -> None:
    model, result = digits_like()
    source = model.finish(result)
    data = list(np.random.default_rng(1).standard_normal((16, 1, 12, 12, 3)).astype(np.float32))
    converted = litebnn.convert_tflite(
        source, representative_dataset=data, inference_input_type=np.int8, inference_output_type="int8"
    )
    assert {"QUANTIZE", "DEQUANTIZE"}.isdisjoint(types(converted))
    assert set(types(converted).values()) == {"INT8"}
    interpreter = litebnn.Interpreter(converted)
    [(scale, zero)], [(out_scale, out_zero)] = interpreter.input_quantization, interpreter.output_quantization
    x = np.concatenate(data)
    levels = np.clip(np.round(x / scale) + zero, -128, 127).astype(np.int8)
    actual = (interpreter.predict(levels).astype(np.float32) - out_zero) * out_scale
    expected = litebnn.Interpreter(source).predict(x)
    assert np.mean(actual.argmax(axis=1) == expected.argmax(axis=1)) >= 0.75
    assert np.mean(np.abs(actual - expected)) < 0.03


@pytest.mark.parametrize("interface", ["float32", "int8", "uint8"])
def test_inputs_and_outputs_of_one_shape_keep_their_places_and_names(interface: str) -> None:
    rng = np.random.default_rng(0)
    model = FloatModel()
    b, a = model.input(1, 4, 4, 32), model.input(1, 4, 4, 32)
    first, second = model.elementwise("SUB", a, b), model.elementwise("SUB", b, a)
    binary = model.conv(model.sign(a), sign_weights(rng, 32, 1, 1, 32) / 8)
    outputs = [second, binary, first, model.elementwise("RELU", b), second]
    built = model.model(*outputs)
    assert built.signatures is not None
    built.signatures[0].outputs = list(zip("zyxwv", outputs, strict=True))
    source = write_model(built)
    data = [list(pair) for pair in rng.standard_normal((8, 2, 1, 4, 4, 32)).astype(np.float32)]
    types = {"inference_input_type": interface, "inference_output_type": interface}
    interpreter = litebnn.Interpreter(litebnn.convert_tflite(source, representative_dataset=data, **types))
    expected = litebnn.Interpreter(source).predict(data[0])
    named_data = [{a.name: right, b.name: left} for left, right in data]
    for verify in (True, named_data[0]):
        dataset = {"representative_dataset": named_data, "verify": verify}
        _, report = litebnn.convert_tflite(source, return_report=True, **dataset, **types)
        assert report.difference < 0.3
    arrays = data[0]
    if interface != "float32":
        grids, ends = interpreter.input_quantization, np.iinfo(interface)
        arrays = [
            np.round(array / scale + zero).clip(ends.min, ends.max).astype(interface)
            for array, (scale, zero) in zip(arrays, grids, strict=True)
        ]
    listed = interpreter.predict(arrays)
    named = interpreter.predict(dict(zip(interpreter.input_names, arrays, strict=True)))
    assert interpreter.input_names == [b.name, a.name]
    assert interpreter.output_names == ["v", "y", "x", "w", "z"]
    grids = interpreter.output_quantization
    for place, name in enumerate(["z", "y", "x", "w", "v"]):
        scale, zero = grids[place]
        for found in (listed[place], named[name]):
            assert found.dtype == interface
            values = found if interface == "float32" else (found.astype(np.float32) - zero) * scale
            assert np.sqrt(np.mean((values - expected[place]) ** 2)) < 0.3 * np.std(expected[place])


def test_a_layer_that_is_zero_on_all_samples_is_loaded_and_said() -> None:
    rng = np.random.default_rng(0)
    model = FloatModel()
    x = model.conv(model.input(1, 6, 6, 3), rng.standard_normal((32, 3, 3, 3)), np.full(32, -1e4), activation="relu")
    y = model.reshape(model.conv(model.sign(x), sign_weights(rng, 8, 1, 1, 32)), 1, 128)
    offset = rng.standard_normal(10)
    z = model.dense(model.reshape(x, 1, 512), rng.standard_normal((10, 512)), offset)
    data = list(rng.standard_normal((4, 1, 6, 6, 3)).astype(np.float32))
    converted, report = litebnn.convert_tflite(model.finish(y, z), representative_dataset=data, return_report=True)
    [warning] = [line for line in report.warnings if "is zero on all samples" in line]
    assert warning.startswith(f"{x.name}: ")
    result = litebnn.Interpreter(converted).predict(data[0])[1]
    np.testing.assert_allclose(result[0], offset, atol=np.ptp(offset) / 100)


def test_a_pruned_channel_keeps_its_bias() -> None:
    rng = np.random.default_rng(0)
    model = FloatModel()
    kernel = rng.standard_normal((32, 3, 3, 3)) / 1e5
    kernel[5], kernel[6] = 0, 1e-20
    bias = rng.standard_normal(32) / 1e3
    x = model.conv(model.elementwise("MUL", model.input(1, 6, 6, 3), model.const(50)), kernel, bias)
    y = model.conv(model.sign(x), sign_weights(rng, 8, 1, 1, 32))
    data = list(rng.standard_normal((4, 1, 6, 6, 3)).astype(np.float32))
    converted = litebnn.convert_tflite(model.finish(x, y), representative_dataset=data)
    assert types(converted)["CONV_2D"] == "INT8"
    result = litebnn.Interpreter(converted).predict(data[0])[0]
    np.testing.assert_allclose(result[..., 5:7], np.broadcast_to(bias[5:7], (1, 4, 4, 2)), atol=np.ptp(result) / 200)


def test_a_bias_that_32_bits_do_not_hold_leaves_its_layer_float() -> None:
    rng = np.random.default_rng(0)
    model = FloatModel()
    x = model.elementwise("MUL", model.input(1, 32), model.const(1e-12))
    y = model.dense(model.elementwise("RELU", x), rng.standard_normal((10, 32)), rng.standard_normal(10))
    z = model.dense(model.sign(x), sign_weights(rng, 8, 32))
    data = list(rng.standard_normal((4, 1, 32)).astype(np.float32))
    source = model.finish(y, z)
    converted, report = litebnn.convert_tflite(source, representative_dataset=data, return_report=True)
    assert f"{y.name}: it stays float, for its bias does not fit into 32 bits" in report.warnings
    expected, actual = (litebnn.Interpreter(file).predict(data[0])[0] for file in (source, converted))
    np.testing.assert_allclose(actual, expected, atol=np.ptp(expected) / 100)


@pytest.mark.parametrize("once", [False, True])
def test_an_int8_result_is_verified_on_the_samples_as_long_as_there_are_any(once: bool) -> None:
    model, result = digits_like()
    data = list(np.random.default_rng(1).standard_normal((4, 1, 12, 12, 3)).astype(np.float32))
    _, report = litebnn.convert_tflite(
        model.finish(result),
        representative_dataset=iter(data) if once else data,
        inference_input_type="int8",
        inference_output_type="int8",
        verify=True,
        return_report=True,
    )
    assert 0 < report.difference < 0.5


def quantized_training() -> bytes:
    """A model with fake quantization of an input, a kernel and an output, around a float and a binary convolution."""
    rng = np.random.default_rng(0)
    model = FloatModel()

    def fake(x: Tensor, scale: float, zero_point: int) -> Tensor:
        levels = model.op("QUANTIZE", [x], x.dims, type="UINT8")
        levels.quantization = parameters(scale, zero_point)
        return model.op("DEQUANTIZE", [levels], x.dims)

    x = fake(model.input(1, 8, 8, 3), 1 / 32, 128)
    kernel = fake(model.const(rng.standard_normal((32, 3, 3, 3)) / 4), 1 / 64, 128)
    x = fake(model.conv(x, kernel, rng.standard_normal(32), activation="relu"), 1 / 16, 0)
    x = model.conv(model.sign(model.max_pool(x, 2, 2), "where_gt"), sign_weights(rng, 16, 2, 2, 32) / 27)
    return model.finish(fake(x, 1 / 4, 120))


def test_fake_quantization_of_kernels_and_activations() -> None:
    source = quantized_training()
    converted = litebnn.convert_tflite(source)
    assert types(converted) == {
        "QUANTIZE": "INT8",
        "CONV_2D": "INT8",
        "MAX_POOL_2D": "INT8",
        "SUB": "FLOAT32",
        "DEQUANTIZE": "FLOAT32",
    }
    x = np.random.default_rng(1).standard_normal((64, 8, 8, 3)).astype(np.float32)
    expected, actual = (litebnn.Interpreter(model).predict(x) for model in (source, converted))
    assert np.mean(np.abs(actual - expected) > 1e-6) < 0.02


def test_a_default_range_is_for_latency_only() -> None:
    model, result = digits_like()
    with pytest.warns(UserWarning, match="meaningless"):
        converted = litebnn.convert_tflite(model.finish(result), experimental_default_int8_range=(-3, 3))
    assert set(types(converted)) >= {"CONV_2D", "FULLY_CONNECTED", "SOFTMAX"}
    assert all(kind == "INT8" for name, kind in types(converted).items() if name != "DEQUANTIZE")


def where_sign(model: FloatModel, x: Tensor, one: float) -> Tensor:
    """Appends an int8 sign as a quantizer writes it: a comparison that selects between the levels 127 and -127, with
    the scale 1/127.
    """
    condition = model.op("GREATER_EQUAL", [x, zero(x)], x.dims, type="BOOL")
    positive, negative = (int8_constant("", np.full(1, v, np.float32), 1 / 127) for v in (one, -one))
    sign = model.op("SELECT_V2", [condition, positive, negative], x.dims, type="INT8")
    sign.quantization = parameters(1 / 127)
    return sign


def zero(x: Tensor) -> Tensor:
    scale, zero_point = x.per_tensor_quantization or (1.0, 0)
    return int8_constant("", np.zeros(1, np.float32), scale, zero_point)


def int8_graph(one: float) -> tuple[bytes, bytes]:
    """Two equivalent models, the first in int8 and the second in float."""
    rng = np.random.default_rng(0)
    weights, bias = sign_weights(rng, 8, 3, 3, 32) / 16, rng.integers(-64, 64, 8) / 16
    float_model = FloatModel()
    x = float_model.input(1, 6, 6, 32)
    reference = float_model.finish(float_model.conv(float_model.sign(x), one * weights, bias))

    model = FloatModel()
    x = model.input(1, 6, 6, 32, type="INT8")
    x.quantization = parameters(1 / 16, 5)
    scales = np.abs(weights).max(axis=(1, 2, 3)) / 127
    kernel = int8_constant("kernel", weights, scales, 0, 0)
    offset = model.const(np.round(bias / (scales / 127)), np.int32)
    offset.quantization = parameters(scales / 127)
    y = model.conv(where_sign(model, x, one), kernel)
    op = model.graph.producer(y)
    assert op is not None
    op.inputs[2] = offset
    y.type, y.quantization = "INT8", parameters(1 / 8, -3)
    return model.finish(y), reference


@pytest.mark.parametrize("one", [1.0, -1.0])
def test_a_graph_that_is_int8_already_gets_int8_binary_ops(one: float) -> None:
    source, reference = int8_graph(one)
    converted = litebnn.convert_tflite(source)
    assert op_names(converted) == ["LceQuantize", "LceBconv2d"]
    x = np.random.default_rng(1).integers(-128, 128, (1, 6, 6, 32)).astype(np.int8)
    actual = litebnn.Interpreter(converted).predict(x)
    expected = litebnn.Interpreter(reference).predict((x.astype(np.float32) - 5) / 16)
    levels = np.clip(np.round(expected * 8) - 3, -128, 127)
    assert np.max(np.abs(actual - levels)) <= 1


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"inference_input_type": "int8"}, "input .* is not quantized"),
        ({"inference_output_type": "int8"}, "output .* is not quantized"),
        ({"representative_dataset": []}, "gave no sample"),
        ({"representative_dataset": [np.zeros((1, 2, 3), np.float32)]}, "sample 0"),
        ({"representative_dataset": [np.full((1, 10, 12, 64), np.nan, np.float32)]}, "not finite"),
        ({"inference_input_type": "uint4"}, "expected float32, int8 or uint8"),
        ({"target": "xcore"}, 'expected "arm"'),
        ({"experimental_default_int8_range": (1, 1)}, "min < max"),
    ],
)
def test_options_that_do_not_fit(options: dict[str, Any], reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        litebnn.convert_tflite(RESIDUAL, **options)


def test_an_output_that_is_listed_twice_becomes_int8() -> None:
    rng = np.random.default_rng(0)
    model = FloatModel()
    x = model.conv(model.sign(model.input(1, 4, 4, 32)), sign_weights(rng, 8, 3, 3, 32))
    y = model.op("QUANTIZE", [x], x.dims, type="INT8")
    y.quantization = parameters(2.0, 0)
    result = model.op("DEQUANTIZE", [y], y.dims, version=2)
    converted = litebnn.convert_tflite(model.finish(result, result), inference_output_type="int8")
    assert [tensor.type for tensor in read_model(converted).graphs[0].outputs] == ["INT8", "INT8"]


@pytest.mark.parametrize("form", ["where_gt", "where_le"])
def test_zeros_of_a_relu_stay_below_a_strict_threshold(form: str) -> None:
    rng = np.random.default_rng(0)
    model = FloatModel()
    x = model.conv(model.input(1, 6, 6, 3), rng.standard_normal((32, 3, 3, 3)).astype(np.float32))
    x = model.sign(model.elementwise("RELU", x), form)
    source = model.finish(model.conv(x, sign_weights(rng, 8, 3, 3, 32)))
    data = rng.standard_normal((8, 6, 6, 3)).astype(np.float32)
    converted = litebnn.convert_tflite(source, representative_dataset=list(data[:, None]))
    expected, actual = (litebnn.Interpreter(each).predict(data) for each in (source, converted))
    # Rounding to int8 turns values near zero into zero. If the sign of zero were wrong, the error would be larger than
    # the outputs.
    assert np.sqrt(np.mean((actual - expected) ** 2)) < 0.3 * np.sqrt(np.mean(expected**2))
