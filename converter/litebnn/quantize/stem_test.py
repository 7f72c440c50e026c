from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import litebnn
from litebnn.errors import ConversionError
from litebnn.flatbuffer import read_model
from litebnn.graph import Array, Model, Op, Tensor
from litebnn.quantize.stem import ranges_of_stem
from litebnn.rules.build.notes import Notes
from litebnn.runtime.intermediates import with_outputs
from tests.support.float_models import FloatModel, op_names, sign_weights

LIMITS = (-1.0, 1.0)


def network(
    taps: int = 3, channels: int = 3, stride: int = 1, activation: str = "none", *, same: bool = True, seed: int = 0
) -> bytes:
    """A float stem (first convolution) of 32 channels and a max pool. The pool's output is an output of the model
    and goes into a binary convolution.
    """
    rng = np.random.default_rng(seed)
    model = FloatModel()
    weights = rng.standard_normal((32, taps, taps, channels)).astype(np.float32) / taps
    bias = 0.3 * rng.standard_normal(32)
    image = model.input(1, 24, 24, channels)
    x = model.conv(image, weights, bias, same=same, stride=(stride, stride), activation=activation)
    x = model.max_pool(x, 2, 2)
    return model.finish(model.conv(model.sign(x), sign_weights(rng, 8, 3, 3, 32)), x)


def converted(source: bytes, limits: tuple[float, float] = LIMITS, **options: Any) -> Model:
    result, report = litebnn.convert_tflite(source, stem="int8", input_range=limits, return_report=True, **options)
    assert sum("it is int8 for inputs from" in line for line in report.warnings) >= 1
    return read_model(result)


def stem_of(model: Model) -> Op:
    [stem] = [op for op in model.ops() if op.name == "CONV_2D"]
    return stem


def grid_ends(tensor: Tensor) -> tuple[float, float]:
    scale, zero_point = tensor.per_tensor_quantization or (0.0, 0)
    return scale * (-128 - zero_point), scale * (127 - zero_point)


@pytest.mark.parametrize("channels", [1, 2, 3, 4])
@pytest.mark.parametrize("activation", ["none", "relu", "relu6"])
def test_only_the_stem_and_what_moves_its_results_are_int8(channels: int, activation: str) -> None:
    result = converted(network(channels=channels, activation=activation))
    assert sorted(op_names(result)) == [
        *("CONV_2D", "DEQUANTIZE", "LceBconv2d", "LceQuantize", "MAX_POOL_2D", "QUANTIZE")
    ]
    assert [op.input(0).type for op in result.ops() if op.name in ("LceQuantize", "MAX_POOL_2D")] == ["INT8", "INT8"]
    stem = stem_of(result)
    weights = stem.input(1)
    assert (stem.input(0).type, weights.type, stem.input(2).type, stem.output.type) == ("INT8", "INT8", "INT32", "INT8")
    assert weights.array is not None
    assert weights.array.min() >= -127
    assert weights.quantization is not None
    assert weights.quantization.scale.shape == (32,)
    assert not weights.quantization.zero_point.any()
    assert stem.input(0).per_tensor_quantization == (pytest.approx(2 / 255), 0)
    assert {tensor.type for tensor in result.graphs[0].outputs} == {"FLOAT32"}


def ramps(rng: np.random.Generator, shape: tuple[int, ...], limits: tuple[float, float]) -> Array:
    """A smooth image of waves in random directions, which fills the range."""
    rows, columns = np.mgrid[: shape[1], : shape[2]] / 6
    waves = [np.sin(rng.normal() * rows + rng.normal() * columns + rng.uniform(0, 6)) for _ in range(shape[3])]
    low, high = limits
    return ((np.stack(waves, -1)[None] + 1) / 2 * (high - low) + low).astype(np.float32)


def noise(rng: np.random.Generator, shape: tuple[int, ...], limits: tuple[float, float]) -> Array:
    return rng.uniform(*limits, shape).astype(np.float32)


# The largest allowed errors by the filter's width, relative to the root mean square of the stem's output. The measured
# errors are 0.0234, 0.0265 and 0.0286.
LARGEST = {3: 0.026, 5: 0.029, 7: 0.032}


@pytest.mark.usefixtures("library")
@pytest.mark.parametrize("make", [noise, ramps])
@pytest.mark.parametrize(
    ("taps", "channels", "stride", "activation", "limits", "same"),
    [
        (3, 3, 1, "none", (-1.0, 1.0), True),
        (3, 3, 2, "relu", (-1.0, 1.0), True),
        (3, 1, 1, "none", (0.0, 1.0), False),
        (3, 4, 2, "relu6", (-1.0, 1.0), True),
        (5, 3, 2, "none", (-2.2, 2.7), True),
        (5, 2, 1, "relu", (0.0, 1.0), False),
        (7, 3, 2, "none", (-1.0, 1.0), True),
        (7, 3, 2, "relu", (-2.2, 2.7), True),
    ],
)
def test_the_error_of_eight_networks(
    make: Callable[..., Array],
    taps: int,
    channels: int,
    stride: int,
    activation: str,
    limits: tuple[float, float],
    same: bool,
) -> None:
    source = network(taps, channels, stride, activation, same=same, seed=taps + channels)
    before, after = read_model(source), converted(source, limits)
    float_stem, stem = before.graphs[0].ops[0].output, stem_of(after).output
    scale, zero_point = stem.per_tensor_quantization or (0.0, 0)
    image = make(np.random.default_rng(1), (1, 24, 24, channels), limits)
    expected, levels = (
        litebnn.Interpreter(with_outputs(one, [tensor])).predict(image)[-1]
        for one, tensor in ((before, float_stem), (after, stem))
    )
    low, high = grid_ends(stem)
    assert low - scale <= expected.min()
    assert expected.max() <= high + scale
    actual = (levels.astype(np.float32) - zero_point) * scale
    error = np.sqrt(np.mean((actual - expected) ** 2) / np.mean(expected**2))
    assert error < LARGEST[taps]


def test_a_small_filter_never_saturates_and_a_large_one_is_finer_than_its_bound() -> None:
    """If all weights have one sign, a white image makes the output as large as any image can. With 147 weights of both
    signs, images hardly reach half of that bound, so the range is estimated.
    """
    for weights, reaches in ((np.ones((4, 3, 3, 3)), True), (np.resize([1.0, -1.0], (4, 7, 7, 3)), False)):
        model = FloatModel()
        built = model.model(model.conv(model.input(1, 16, 16, 3), weights.astype(np.float32)))
        notes = Notes(built)
        ranges = ranges_of_stem(built, (0.0, 1.0), notes)
        bound = np.abs(weights[0]).sum() if reaches else weights[0].clip(0).sum()
        _, high = ranges[built.graphs[0].outputs[0]]
        assert high == pytest.approx(bound) if reaches else high < 0.6 * bound
        [line] = notes.warnings
        assert ("estimated" in line) != reaches


def test_a_relu_after_the_stem_ends_its_grid() -> None:
    model = FloatModel()
    x = model.conv(model.input(1, 8, 8, 3), np.random.default_rng(0).standard_normal((8, 3, 3, 3)).astype(np.float32))
    result = converted(model.finish(model.elementwise("TANH", model.elementwise("RELU", x))))
    assert op_names(result) == ["QUANTIZE", "CONV_2D", "DEQUANTIZE", "TANH"]
    assert grid_ends(stem_of(result).output)[0] == 0


def test_what_moves_an_image_before_the_stem_is_int8_too() -> None:
    model = FloatModel()
    image = model.pad(model.input(1, 8, 8, 3), [(1, 1), (1, 1)])
    weights = np.random.default_rng(0).standard_normal((8, 3, 3, 3)).astype(np.float32)
    result = converted(model.finish(model.conv(image, weights)), (0.5, 1.0))
    assert op_names(result) == ["QUANTIZE", "PAD", "CONV_2D", "DEQUANTIZE"]
    assert grid_ends(stem_of(result).input(0)) == (pytest.approx(0, abs=1e-6), pytest.approx(1))  # padding is zero


@pytest.mark.parametrize("kind", ["int8", "uint8"])
@pytest.mark.usefixtures("library")
def test_a_program_feeds_levels(kind: str) -> None:
    source = network()
    as_floats, as_levels = (
        litebnn.Interpreter(
            litebnn.convert_tflite(source, stem="int8", input_range=(0, 255), inference_input_type=each)
        )
        for each in ("float32", kind)
    )
    assert as_levels.input_quantization == [(1.0, {"int8": -128, "uint8": 0}[kind])]
    pixels = np.random.default_rng(0).integers(0, 256, (1, 24, 24, 3))
    levels = pixels.astype(np.uint8) if kind == "uint8" else (pixels - 128).astype(np.int8)
    for expected, actual in zip(as_floats.predict(pixels.astype(np.float32)), as_levels.predict(levels), strict=True):
        assert np.array_equal(actual, expected)


@pytest.mark.usefixtures("library")
def test_random_inputs_of_a_verification_are_in_range() -> None:
    model = FloatModel()
    y = model.conv(model.input(1, 8, 8, 3), np.random.default_rng(0).standard_normal((8, 3, 3, 3)).astype(np.float32))
    options: Any = {"stem": "int8", "input_range": (0, 0.1), "inference_input_type": "uint8"}
    _, report = litebnn.convert_tflite(model.finish(y), **options, verify=True, return_report=True)
    assert report.verification.difference < 0.1


@pytest.mark.usefixtures("library")
def test_signs_of_a_stem_that_only_signs_read() -> None:
    """If only signs read the stem's output, the converter chooses a scale for values near zero, and larger values
    saturate.

    A scale for the whole range of values would flip far more signs.
    """
    rng = np.random.default_rng(0)
    model = FloatModel()
    x = model.conv(model.input(1, 24, 24, 3), rng.standard_normal((32, 7, 7, 3)).astype(np.float32))
    source = model.finish(model.conv(model.sign(x), sign_weights(rng, 8, 3, 3, 32)))
    image = noise(rng, (1, 24, 24, 3), LIMITS)
    before, after = read_model(litebnn.convert_tflite(source)), converted(source)
    signs = []
    for one in (before, after):
        bits = next(op.output for op in one.ops() if op.name == "LceQuantize")
        signs.append(np.ravel(litebnn.Interpreter(with_outputs(one, [bits])).predict(image)[-1]))
    flipped = np.unpackbits((signs[0] ^ signs[1]).view(np.uint8)).mean()
    assert 0 < flipped < 0.005


def test_two_stems_read_one_image_on_one_grid() -> None:
    rng = np.random.default_rng(0)
    model = FloatModel()
    image = model.input(1, 8, 8, 3)
    both = [model.conv(image, rng.standard_normal((4, taps, taps, 3)), same=True) for taps in (3, 5)]
    result = converted(model.finish(*both), inference_input_type="int8")
    assert sorted(op_names(result)) == ["CONV_2D", "CONV_2D", "DEQUANTIZE", "DEQUANTIZE"]
    assert {op.input(0) for op in result.ops() if op.name == "CONV_2D"} == set(result.graphs[0].inputs)


def refusal(model: FloatModel, *outputs: Tensor) -> str:
    with pytest.raises(ConversionError) as error:
        litebnn.convert_tflite(model.finish(*outputs), stem="int8", input_range=LIMITS)
    assert "\n" not in str(error.value)
    return str(error.value)


def test_networks_that_have_no_stem() -> None:
    rng = np.random.default_rng(0)
    expected = "stem: expected a CONV_2D of 1 to 4 channels with float constants to read an input, found "
    for channels, found in ((32, "LceQuantize after"), (5, "CONV_2D of 5 channels after")):
        model = FloatModel()
        image = model.input(1, 8, 8, channels)
        x = model.sign(image) if channels == 32 else image
        line = refusal(model, model.conv(x, sign_weights(rng, 8, 3, 3, channels)))
        assert line.startswith(expected + found)
    model = FloatModel()
    assert refusal(model, model.dense(model.input(1, 4), rng.standard_normal((2, 4)))).startswith(expected + "FULLY")
    model = FloatModel()
    weights = np.full((2, 3, 3, 3), np.nan)
    assert refusal(model, model.conv(model.input(1, 8, 8, 3), weights)).startswith(expected + "CONV_2D of 3")


def test_a_bias_that_does_not_fit_is_refused() -> None:
    model, weights = FloatModel(), np.ones((2, 3, 3, 3))
    weights[0] = 0
    y = model.conv(model.input(1, 8, 8, 3), weights, np.array([1e6, 0]))
    line = refusal(model, y)
    assert line == f'stem: the bias of "{y.name}" does not fit into 32 bits in its weights\' scale'


def test_half_precision_weights_are_taken() -> None:
    model = FloatModel()
    half = np.random.default_rng(0).standard_normal((8, 3, 3, 3)).astype(np.float16)
    weights = model.op("DEQUANTIZE", [model.const(half, np.float16)], half.shape)
    result = converted(model.finish(model.conv(model.input(1, 8, 8, 3), weights)))
    assert op_names(result) == ["QUANTIZE", "CONV_2D", "DEQUANTIZE"]


def test_an_image_that_other_ops_read_too_is_refused() -> None:
    model = FloatModel()
    image = model.input(1, 8, 8, 3)
    y = model.conv(image, np.ones((3, 3, 3, 3)), same=True)
    line = refusal(model, model.elementwise("ADD", y, image))
    assert line == f'stem: expected only convolutions to read "{image.name}", found ADD too'


def test_a_converted_file_is_refused() -> None:
    again = litebnn.convert_tflite(network())
    with pytest.raises(ConversionError, match=re.escape("stem, input_range: the model is converted already")):
        litebnn.convert_tflite(again, stem="int8", input_range=LIMITS)
