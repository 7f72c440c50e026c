import re
import warnings
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import litebnn
from litebnn.flatbuffer import read_model
from litebnn.graph import Array, Tensor
from litebnn.rules.build.int8 import int8_constant
from litebnn.rules.build.notes import Notes
from litebnn.rules.int8.pack_weights import pack_weights
from tests.support.float_models import FloatModel, op_names
from tests.support.quantized_models import TrainedModel, in_half_precision

RNG = np.random.default_rng(0)


def convert(source: bytes, **options: Any) -> tuple[bytes, litebnn.ConversionReport]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that there is no binary layer
        return litebnn.convert_tflite(source, return_report=True, **options)


def weights_of(kind: str, *shape: int, axis: int = 0) -> Array:
    """Weights of ±alpha ("binary") or of ±alpha and 0 ("ternary"), with an alpha for each channel along `axis`."""
    levels = RNG.choice([-1, 1], shape) if kind == "binary" else RNG.integers(-1, 2, shape)
    alpha = RNG.uniform(1e-3, 2, shape[axis])
    return np.moveaxis(np.moveaxis(levels, axis, -1) * alpha, -1, axis).astype(np.float32)


def layer(model: FloatModel, x: Tensor, name: str, kind: str, channels: int, taps: int, stride: int = 1) -> Tensor:
    bias = RNG.standard_normal(channels).astype(np.float32)
    if name == "depthwise":
        weights = weights_of(kind, 1, taps, taps, channels, axis=3)
        return model.depthwise_conv(x, weights, bias, stride=stride)
    weights = weights_of(kind, channels, taps, taps, x.channels)
    if name == "transposed":
        return model.transposed_conv(x, weights, bias, stride=(stride, stride))
    return model.conv(x, weights, bias, same=True, stride=(stride, stride), activation="relu")


@settings(max_examples=20)
@given(
    st.sampled_from(["conv", "depthwise", "transposed"]),
    st.sampled_from(["binary", "ternary"]),
    st.integers(2, 5),
    st.integers(1, 2),
)
def test_results_are_equal_to_the_last_bit(name: str, kind: str, taps: int, stride: int) -> None:
    model = FloatModel()
    x = model.input(1, 7, 6, 96)
    source = model.finish(layer(model, x, name, kind, 96, taps, stride))
    result, report = convert(source, low_bit_weights="int2")
    assert op_names(result)[0] == "LitebnnUnpackWeights"
    bits, count = (1 if kind == "binary" else 2), 96 * taps * taps * (1 if name == "depthwise" else 96)
    words = 32 if name == "depthwise" else 32 * 96
    assert report.layers[0].bytes_after <= (count + words) * bits / 8 + 2 * 4 * 96
    inputs = RNG.standard_normal((1, 7, 6, 96)).astype(np.float32)
    expected, actual = (litebnn.Interpreter(each).predict(inputs) for each in (source, result))
    np.testing.assert_array_equal(actual, expected)


def test_weights_that_the_source_stores_in_half_precision() -> None:
    model = FloatModel()
    weights = weights_of("ternary", 40, 3, 3, 40).astype(np.float16).astype(np.float32)
    source = in_half_precision(model.finish(model.conv(model.input(1, 5, 5, 40), weights)))
    result, report = convert(source, low_bit_weights="int4", verify=True)
    assert op_names(result)[0] == "LitebnnUnpackWeights"
    assert report.difference is not None
    assert report.difference < 1e-6


def test_a_channel_of_zeros_takes_no_second_bit() -> None:
    model = FloatModel()
    weights = weights_of("binary", 32, 3, 3, 64)
    weights[[3, 17]] = 0
    source = model.finish(model.conv(model.input(1, 5, 5, 64), weights))
    result, report = convert(source, low_bit_weights="int2", verify=True)
    assert report.layers[0].bytes_after == 32 * 9 * 64 // 8 + 2 * 4 * 32
    assert report.difference == 0
    unpacking = read_model(result).graphs[0].ops[0]
    assert len(unpacking.inputs) == 2


def reasons(built: FloatModel, y: Tensor, **options: Any) -> list[str]:
    model = built.model(y)
    notes = Notes(model, {"low_bit_weights": "int2", **options})
    assert not pack_weights(model.graphs[0], notes)
    return [*notes.layers[0].reasons]


def test_a_layer_that_keeps_its_weights_says_why() -> None:
    model = FloatModel()
    [reason] = reasons(model, model.conv(model.input(1, 5, 5, 64), RNG.standard_normal((32, 3, 3, 64))))
    assert reason == (
        "its weights take other values than -alpha, 0 and alpha in an output channel, so its weights stay FLOAT32"
    )
    model = FloatModel()
    [reason] = reasons(model, model.conv(model.input(1, 5, 5, 3), weights_of("binary", 2, 3, 3, 3)))
    assert reason == "packed weights would not make the file smaller, so its weights stay FLOAT32"
    model = FloatModel()
    x = model.input(1, 5, 5, 64)
    [reason] = reasons(model, model.conv(x, weights_of("binary", 32, 3, 3, 64)), larq_compatible=True)
    assert reason == "Larq's runtime cannot unpack weights, so its weights stay FLOAT32"
    model = FloatModel()
    x, weights = model.input(1, 5, 5, 64), model.input(32, 3, 3, 64)
    [reason] = reasons(model, model.conv(x, weights))
    assert reason == "its weights are not a float constant, so its weights stay FLOAT32"


def test_an_int8_layer_says_why_its_weights_stay() -> None:
    """The first layer is int8, the second has int8 weights and quantizes its input at run time."""
    model, grid = TrainedModel(), (0.05, 0)
    levels = RNG.choice([-127, 127], (64, 3, 3, 64))
    weights = model.fake_weights(levels, np.array([0.01]))
    x = model.fake(model.conv(model.fake(model.input(1, 5, 5, 64), grid), weights), grid)
    source = model.finish(model.conv(x, int8_constant("weights", levels, 1.0)))
    result, report = convert(source, low_bit_weights="int2")
    assert op_names(result) == ["QUANTIZE", "CONV_2D", "DEQUANTIZE", "CONV_2D"]
    for each in report.layers:
        assert "only convolutions in float read packed weights, so its weights stay INT8" in each.reasons


@pytest.mark.parametrize("kind", ["binary", "ternary"])
def test_without_the_option_a_line_says_how_small_the_file_could_be(kind: str) -> None:
    model = FloatModel()
    x = layer(model, model.input(1, 8, 8, 128), "conv", kind, 128, 3)
    source = model.finish(layer(model, x, "conv", kind, 128, 3))
    result, report = convert(source)
    assert result == source
    [line] = report.warnings
    small, with_option = convert(source, low_bit_weights="int2")
    found = re.match(r"low_bit_weights would make the file (\d+) kB instead of ([\d,]+) kB", line)
    assert found is not None
    assert int(found[1]) == pytest.approx(len(small) / 1000, abs=2)
    assert found[2] == f"{len(source) / 1000:,.0f}"
    assert not any("would make" in each for each in with_option.warnings)
    bits = 1 if kind == "binary" else 2
    assert 8 * len(small) / (2 * 9 * 128 * 128) < bits * 1.1
    assert any("needs litebnn's library" in each for each in with_option.warnings)


def test_a_model_of_other_weights_has_no_such_line() -> None:
    model = FloatModel()
    source = model.finish(model.conv(model.input(1, 8, 8, 128), RNG.standard_normal((128, 3, 3, 128))))
    _, report = convert(source)
    assert report.warnings == ()
