import warnings
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import litebnn
from litebnn.flatbuffer import read_model
from litebnn.rules.binarize.split_transposed_convs import split_transposed_convs
from litebnn.rules.build.notes import Notes
from litebnn.rules.thresholds.recognize_signs import recognize_signs
from litebnn.safety import check_model
from tests.support.float_models import (
    ACTIVATIONS,
    FloatModel,
    assert_same_values,
    dyadic,
    op_names,
    rewritten,
    sign_weights,
)
from tests.support.quantized_models import (
    EXACT_GRID,
    NO_MINUS_GRID,
    USUAL_GRID,
    Grid,
    Int8Model,
    Int16Model,
    in_half_precision,
)


@settings(max_examples=60)
@given(
    st.tuples(st.integers(1, 6), st.integers(1, 6)),
    st.tuples(st.integers(1, 6), st.integers(1, 6)),
    st.integers(1, 4),
    st.booleans(),
    st.booleans(),
    st.integers(0, 3),
    st.sampled_from(sorted(ACTIVATIONS)),
    st.sampled_from([(32, 3), (40, 8)]),
    st.integers(1, 2),
)
def test_transposed_convolutions_are_binary_and_exact(
    size: tuple[int, int],
    taps: tuple[int, int],
    stride: int,
    same: bool,
    with_bias: bool,
    odd: int,
    activation: str,
    channels: tuple[int, int],
    batch: int,
) -> None:
    rng = np.random.default_rng(sum(size) + sum(taps))
    taps = (max(taps[0], stride), max(taps[1], stride))
    odd = min(odd, stride - 1)
    model = FloatModel()
    x = model.sign(model.input(batch, *size, channels[0]))
    bias = dyadic(rng, channels[1]) if with_bias else None
    weights = sign_weights(rng, channels[1], *taps, channels[0])
    strides = (stride, stride)
    y = model.transposed_conv(x, weights, bias, stride=strides, same=same, activation=activation, odd=odd)
    source = model.finish(y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that there is no binary layer
        converted, report = litebnn.convert_tflite(source, return_report=True)
    check_model(read_model(converted))
    [found] = report.layers
    assert found.macs == batch * np.prod(size) * np.prod(taps) * np.prod(channels)
    if found.binary:
        assert found.bytes_after < found.bytes_before
        assert {"TRANSPOSE_CONV", "CONV_2D", "PAD"}.isdisjoint(op_names(converted))
        joins = [op for op in read_model(converted).ops() if op.name == "CONCATENATION"]
        assert all(op.output.channels == stride**2 * channels[1] for op in joins)
    else:
        assert same
        assert odd > 1
        assert "leaves out rows or columns" in next(iter(found.reasons))
    sample = dyadic(rng, batch, *size, channels[0])
    expected, actual = (litebnn.Interpreter(each).predict(sample) for each in (source, converted))
    np.testing.assert_array_equal(actual, expected)


def split(source: bytes) -> tuple[list[str], list[str]]:
    """Runs the rule. Returns the ops after the packed sign, and the reasons why the transposed convolution was left
    alone."""
    model = rewritten(source, recognize_signs)
    notes = Notes(model)
    changed = split_transposed_convs(model.graphs[0], notes)
    names, reasons = op_names(model), list(notes.layers[0].reasons)
    assert changed == ("TRANSPOSE_CONV" not in names) == (not reasons)
    return names[names.index("LceDequantize") + 1 :] if "LceDequantize" in names else names, reasons


def layer(taps: tuple[int, int], stride: tuple[int, int] = (2, 2), *, same: bool = True, zero: bool = False) -> bytes:
    model = FloatModel()
    weights = sign_weights(np.random.default_rng(0), 8, *taps, 32)
    weights[0, 0, 0, 0] *= not zero
    return model.finish(model.transposed_conv(model.sign(model.input(1, 5, 5, 32)), weights, stride=stride, same=same))


def test_phases_with_the_same_window_are_one_convolution() -> None:
    assert split(layer((2, 2))) == (["CONV_2D", "DEPTH_TO_SPACE"], [])
    assert split(layer((4, 4), same=False)) == (["PADV2", "CONV_2D", "DEPTH_TO_SPACE"], [])
    four, _ = split(layer((3, 3)))
    assert four.count("CONV_2D") == 4
    assert four[-2:] == ["CONCATENATION", "DEPTH_TO_SPACE"]


def test_without_a_stride_nothing_is_interleaved() -> None:
    assert split(layer((3, 3), (1, 1))) == (["PADV2", "CONV_2D"], [])
    assert split(layer((1, 1), (1, 1))) == (["CONV_2D"], [])


def test_the_report_lists_once_what_each_phase_does() -> None:
    model = FloatModel()
    weights = sign_weights(np.random.default_rng(0), 8, 3, 3, 32)
    y = model.transposed_conv(model.sign(model.input(1, 5, 5, 32)), weights, np.ones(8))
    y = model.elementwise("MUL", model.elementwise("ADD", y, model.const(np.arange(8))), model.const(2))
    converted, report = litebnn.convert_tflite(model.finish(y), return_report=True)
    convs = [op for op in read_model(converted).ops() if op.name == "LceBconv2d"]
    assert len(convs) == 4
    [found] = report.layers
    assert found.fused == ["ADD", "MUL"]
    constants = {tensor.buffer for op in convs for tensor in op.inputs[1:] if tensor is not None}
    assert found.bytes_after == sum(buffer.data.size for buffer in constants if buffer.data is not None)


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        (layer((1, 2)), "its filter [1, 2] is smaller than its stride 2"),
        (layer((3, 3), (2, 1)), "its strides 2 and 1 differ"),
        (layer((2, 2), zero=True), "weights is 0"),
    ],
)
def test_what_is_no_plain_convolution_of_bits_stays(source: bytes, reason: str) -> None:
    ops, [found] = split(source)
    assert ops == ["TRANSPOSE_CONV"]
    assert reason in found


@pytest.mark.parametrize("kind", [Int8Model, Int16Model])
@pytest.mark.parametrize("taps", [(2, 2), (3, 3)])
@pytest.mark.parametrize(("form", "grid"), [("where", EXACT_GRID), ("where", USUAL_GRID), ("heaviside", NO_MINUS_GRID)])
def test_quantized_ones_are_binary_from_layer_to_layer(
    form: str, grid: Grid, taps: tuple[int, int], kind: type[Int8Model]
) -> None:
    rng = np.random.default_rng(0)
    model = kind()
    x = model.input8((1 / 16, 0), 1, 5, 5, 32)
    for _ in range(2):
        if kind is Int16Model:
            values = model.two_values(model.dequantize8(x), 0.0 if form == "heaviside" else -1.0, 1.0)
            x = model.quantize8(values, (1 / 32767, 0))
        else:
            x = model.sign8(x, form, grid)
        weights = sign_weights(rng, 32, *taps, 32, alpha=False)
        x = model.transposed_conv8(x, weights, (2 * rng.integers(-8, 8, 32) + 1) / 16, (0.5, 0))
    source = model.finish(x)
    converted, report = litebnn.convert_tflite(source, return_report=True)
    assert all(found.binary for found in report.layers)
    assert report.layers[0].output == "bits" or form == "heaviside"
    assert report.layers[1].output == ("INT8" if kind is Int8Model else "FLOAT32")
    levels = rng.integers(-128, 128, (1, 5, 5, 32)).astype(np.int8 if kind is Int8Model else np.int16)
    expected, actual = (litebnn.Interpreter(each).predict(levels).astype(int) for each in (source, converted))
    np.testing.assert_allclose(actual, expected, atol=0 if grid == EXACT_GRID else 2)


@pytest.mark.parametrize("stored_as", [bytes, in_half_precision])
@pytest.mark.parametrize(("values", "padded"), [((0.0, 1.0), False), ((-0.5, 0.5), False), ((-1.0, 3.0), True)])
def test_two_values_are_binary_where_zeros_around_them_are_among_them(
    values: tuple[float, float], padded: bool, stored_as: Callable[[bytes], bytes]
) -> None:
    model = FloatModel()
    x = model.two_values(model.input(1, 5, 5, 32), *values)
    y = model.transposed_conv(x, sign_weights(np.random.default_rng(0), 8, 3, 3, 32))
    source = stored_as(model.finish(y))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that there is no binary layer
        _, report = litebnn.convert_tflite(source, return_report=True, verify=True)
    assert report.layers[0].binary != padded
    assert any("padded with 0, which is neither" in reason for reason in report.layers[0].reasons) == padded


@pytest.mark.parametrize("same", [True, False])
def test_a_batch_that_is_computed_as_the_model_runs(same: bool) -> None:
    """In the output shape of this TRANSPOSE_CONV, the batch size is computed from the input's shape, as TensorFlow
    writes it. The other sizes are constants."""
    model = FloatModel()
    x = model.sign(model.input(1, 5, 4, 32, signature=(-1, 5, 4, 32)))
    weights = sign_weights(np.random.default_rng(0), 8, 3, 3, 32)
    shape = model.op("SHAPE", [x], (4,), type="INT32", table="ShapeOptions", out_type=2)
    bounds = [model.const([bound], np.int32) for bound in (0, 1, 1)]
    batch = model.op("STRIDED_SLICE", [shape, *bounds], (), type="INT32", shrink_axis_mask=1)
    sizes = [model.const(size, np.int32) for size in ((10, 8, 8) if same else (11, 9, 8))]
    asked = model.op("PACK", [batch, *sizes], (4,), type="INT32", table="PackOptions", values_count=4, axis=0)
    result = model.transposed_conv(x, weights, same=same)
    model.graph.set_input(model.graph.ops[-1], 0, asked)
    source = model.finish(result)
    converted, report = litebnn.convert_tflite(source, return_report=True)
    assert report.layers[0].binary, str(report)
    assert {"PACK", "SHAPE"}.isdisjoint(op_names(converted))
    images = dyadic(np.random.default_rng(1), 3, 5, 4, 32)
    expected, actual = (litebnn.Interpreter(each).predict(images) for each in (source, converted))
    np.testing.assert_array_equal(actual, expected)


def test_without_a_sign_or_a_known_size_it_stays() -> None:
    model = FloatModel()
    weights = sign_weights(np.random.default_rng(0), 8, 2, 2, 32)
    source = model.finish(model.transposed_conv(model.input(1, 5, 5, 32), weights))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that there is no binary layer
        _, report = litebnn.convert_tflite(source, return_report=True)
    assert list(report.layers[0].reasons) == ["its input is not the output of a sign"]

    model = FloatModel()
    y = model.transposed_conv(model.sign(model.input(1, 5, 5, 32)), weights)
    graph = model.model(y).graphs[0]
    graph.set_input(graph.ops[-1], 0, model.input(4, type="INT32"))
    assert split(model.finish(y))[1] == ["its output's size is computed when the model runs"]


@pytest.mark.parametrize("pools", range(4, 20))
def test_the_layer_is_binary_if_all_phases_are(pools: int) -> None:
    """The rule splits a transposed convolution into several convolutions, its phases. If a phase pads its input, more
    ops lie between the phase and the sign that it reads. The search for the sign stops after a number of ops.
    """
    model = Int8Model()
    x = model.sign8(model.input8((1 / 16, 3), 1, 22, 22, 32), "where", EXACT_GRID)
    for _ in range(pools):
        x = model.pool8(x)
    y = model.transposed_conv8(x, sign_weights(np.random.default_rng(0), 8, 3, 3, 32), np.arange(8), (1 / 4, 0))
    source = model.finish(y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that there is no binary layer
        converted, report = litebnn.convert_tflite(source, return_report=True)
    [layer] = report.layers
    assert layer.binary == ("CONV_2D" not in op_names(converted) and "TRANSPOSE_CONV" not in op_names(converted))
    assert layer.binary != bool(layer.reasons)
    assert_same_values(source, read_model(converted))


def test_one_input_channel_is_no_reason_to_stay() -> None:
    model = FloatModel()
    weights = sign_weights(np.random.default_rng(0), 8, 2, 2, 1)
    source = model.finish(model.transposed_conv(model.sign(model.input(1, 5, 5, 1)), weights))
    assert split(source) == (["CONV_2D", "DEPTH_TO_SPACE"], [])
