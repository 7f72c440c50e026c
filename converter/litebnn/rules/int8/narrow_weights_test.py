import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import litebnn
from litebnn.analysis.quantization import parameters
from litebnn.flatbuffer import read_model
from litebnn.graph import Array, Model, Op, OpCode, Tensor
from litebnn.rules.build.int8 import int8_constant
from litebnn.rules.build.notes import Notes
from litebnn.rules.int8.narrow_weights import FORMATS, narrow_weights
from tests.support.float_models import FloatModel, dyadic, op_names, sign_weights
from tests.support.quantized_models import in_half_precision, with_quantized_weights


def ternary(rng: np.random.Generator, *shape: int) -> Array:
    """Makes weights of -alpha, 0 and alpha. Float sums of these weights are not exact."""
    alpha = rng.uniform(0.01, 3, (shape[0], 1))
    return (rng.integers(-1, 2, shape) * alpha).astype(np.float32)


def convert(source: bytes, **options: Any) -> bytes:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that there is no binary layer
        return bytes(litebnn.convert_tflite(source, **options))


def dense(rng: np.random.Generator, rows: int, inputs: int, outputs: int, bias: bool = True) -> bytes:
    model = FloatModel()
    x = model.input(rows, inputs)
    offset = rng.standard_normal(outputs).astype(np.float32) if bias else None
    return model.finish(model.dense(x, ternary(rng, outputs, inputs), offset, activation="relu"))


def only_dense(model: bytes | Model) -> Op:
    graph = (read_model(model) if isinstance(model, bytes) else model).graphs[0]
    return next(op for op in graph.ops if op.name == "FULLY_CONNECTED")


@settings(max_examples=25)
@given(
    st.sampled_from(["int4", "int2"]),
    st.integers(1, 3),
    st.integers(1, 70),
    st.integers(1, 40),
    st.booleans(),
    st.integers(0, 2**16),
)
def test_the_results_stay_but_for_rounding(
    type: str, rows: int, inputs: int, outputs: int, bias: bool, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    source = dense(rng, rows, inputs, outputs, bias)
    result = convert(source, low_bit_weights=type)
    assert op_names(result) == ["DEQUANTIZE", "FULLY_CONNECTED"]
    x = rng.standard_normal((rows, inputs)).astype(np.float32)
    expected, actual = (litebnn.Interpreter(model).predict(x) for model in (source, result))
    np.testing.assert_allclose(actual, expected, atol=1e-5 * max(1, np.abs(expected).max()))


@pytest.mark.parametrize("dynamic_range", [False, True])
@pytest.mark.parametrize(("first", "second", "stored"), [("int4", "int2", "INT2"), ("int2", "int4", "INT2")])
def test_narrow_weights_become_narrower_but_not_wider(
    first: str, second: str, stored: str, dynamic_range: bool
) -> None:
    result = dense(np.random.default_rng(0), 2, 33, 12)
    for type in (first, second):
        result = convert(result, low_bit_weights=type, dynamic_range=dynamic_range)
    assert op_names(result) == [*["DEQUANTIZE"] * (not dynamic_range), "FULLY_CONNECTED"]
    types = [tensor.type for op in read_model(result).ops() for tensor in op.inputs if tensor is not None]
    assert stored in types
    assert "INT4" not in types


@pytest.mark.parametrize("type", ["int4", "int2"])
@pytest.mark.parametrize("stored", [in_half_precision, with_quantized_weights])
def test_weights_that_the_source_stores_in_fewer_bits_too(stored: Callable[[bytes], bytes], type: str) -> None:
    rng = np.random.default_rng(0)
    model = FloatModel()
    levels = sign_weights(rng, 12, 33) * rng.integers(0, 2, (12, 33))
    source = model.finish(model.dense(model.input(2, 33), levels, dyadic(rng, 12)))
    result = convert(stored(source), low_bit_weights=type)
    assert only_dense(result).input(1).type == "FLOAT32"
    assert type.upper() in {op.input(0).type for op in read_model(result).ops() if op.name == "DEQUANTIZE"}
    x = dyadic(rng, 2, 33)
    expected, actual = (litebnn.Interpreter(model).predict(x) for model in (source, result))
    np.testing.assert_array_equal(actual, expected)


@settings(max_examples=15)
@given(st.sampled_from(["int4", "int2"]), st.integers(1, 3), st.integers(1, 70), st.integers(1, 40), st.integers(0, 99))
def test_dynamic_range_quantizes_the_input(type: str, rows: int, inputs: int, outputs: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    source = dense(rng, rows, inputs, outputs)
    result = convert(source, low_bit_weights=type, dynamic_range=True)
    assert op_names(result) == ["FULLY_CONNECTED"]
    assert only_dense(result).input(1).type == type.upper()
    x = rng.standard_normal((rows, inputs)).astype(np.float32)
    expected, actual = (litebnn.Interpreter(model).predict(x) for model in (source, result))
    # The runtime quantizes each input to one of 256 levels, so its error is at most half of 1/255 of the range.
    weights = only_dense(source).input(1).array
    assert weights is not None
    step = (max(x.max(), 0) - min(x.min(), 0)) / 127
    assert np.all(np.abs(actual - expected) <= step * np.abs(weights).sum(axis=1) + 1e-5)


def int8_dense(rng: np.random.Generator, inputs: int, outputs: int, weights: Array, finest: float = 0.5) -> FloatModel:
    model = FloatModel()
    x = model.input(1, inputs, type="INT8")
    x.quantization = parameters(0.05, 3)
    kernel = int8_constant("weights", weights, np.abs(weights).max() / 127)
    assert kernel.quantization is not None
    bias = model.const(rng.integers(-2000, 2000, outputs), np.int32)
    bias.quantization = parameters(kernel.quantization.scale * np.float32(0.05))
    y = model.op("FULLY_CONNECTED", [x, kernel, bias], (1, outputs), type="INT8", version=4, weights_format=0)
    y.quantization = parameters(finest, -2)
    model.graph.outputs = [y]
    return model


@settings(max_examples=25)
@given(st.sampled_from(["int4", "int2"]), st.integers(1, 70), st.integers(1, 40), st.integers(0, 2**16))
def test_an_int8_layer_stays_within_a_level(type: str, inputs: int, outputs: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    weights = ternary(rng, outputs, inputs)
    weights = np.sign(weights) * rng.choice([0.25, 0.5, 1.0], (outputs, 1)).astype(np.float32)
    weights[0, 0] = 1.0
    model = int8_dense(rng, inputs, outputs, weights)
    source = model.finish(*model.graph.outputs)
    result = convert(source, low_bit_weights=type)
    assert only_dense(result).input(1).type in (type.upper(), "INT8")
    x = rng.integers(-128, 128, (1, inputs)).astype(np.int8)
    expected, actual = (litebnn.Interpreter(each).predict(x).astype(int) for each in (source, result))
    assert np.abs(actual - expected).max() <= 1


@pytest.mark.parametrize("type", ["int4", "int2"])
def test_layers_that_samples_made_int8(type: str) -> None:
    rng = np.random.default_rng(0)
    model = FloatModel()
    hidden = model.dense(model.input(1, 48), ternary(rng, 40, 48), activation="relu")
    source = model.finish(model.dense(hidden, ternary(rng, 10, 40), rng.standard_normal(10)))
    samples = rng.standard_normal((20, 1, 48)).astype(np.float32)
    before, after = (convert(source, representative_dataset=samples, low_bit_weights=each) for each in (None, type))
    layers = [op for op in read_model(after).ops() if op.name == "FULLY_CONNECTED"]
    assert [(op.input(0).type, op.input(1).type) for op in layers] == [("INT8", type.upper())] * 2
    expected, actual = (litebnn.Interpreter(each).predict(samples[:, 0]) for each in (before, after))
    scaled = layers[1].output.per_tensor_quantization
    assert scaled is not None
    assert np.abs(actual - expected).max() <= 3 * scaled[0]  # one level of each layer


def narrowed(model: Model, type: str, dynamic_range: bool = False) -> Notes:
    """Narrows the weights until nothing changes, and returns the notes."""
    notes = Notes(model, {"low_bit_weights": type.lower(), "dynamic_range": dynamic_range})
    while narrow_weights(model.graphs[0], notes):
        pass
    return notes


def layer(source: bytes, type: str = "INT2", dynamic_range: bool = False) -> tuple[Tensor, list[str], list[str]]:
    """Narrows the weights of a model with one dense layer. Returns the resulting weights, the reasons why the rule left
    the layer alone, and the warnings."""
    model = read_model(source)
    notes = narrowed(model, type, dynamic_range)
    notes.finish(model.graphs)
    return only_dense(model).input(1), list(notes.layers[0].reasons), list(notes.warnings)


def test_the_report_says_what_it_takes_and_what_changes() -> None:
    source = dense(np.random.default_rng(0), 1, 64, 16)
    for type, known in FORMATS.items():
        _, _, [exact] = layer(source, type)
        assert f"its weights are {type}, which takes ai-edge-litert {known.runtime} or newer" in exact
        assert "results stay" in exact
        _, _, [fast] = layer(source, type, dynamic_range=True)
        assert f"ai-edge-litert {known.dynamic_range_runtime} or newer" in fast
        assert "changes results by about a hundredth" in fast
    with pytest.warns(UserWarning, match="no binary layer"):
        _, report = litebnn.convert_tflite(source, low_bit_weights="int2", return_report=True)
    assert report.layers[0].bytes_after == 64 * 16 // 4 + 16 * 4
    assert "INT2" in str(report)


@pytest.mark.parametrize("dynamic_range", [False, True])
@pytest.mark.parametrize(("alpha", "is_narrow"), [(2e-38, True), (1e-38, False), (1e-45, False)])
def test_weights_whose_scale_a_runtime_refuses_stay(alpha: float, is_narrow: bool, dynamic_range: bool) -> None:
    rng = np.random.default_rng(0)
    model = FloatModel()
    weights = rng.choice([-1, 1], (10, 64)) * np.float32(alpha)
    source = model.finish(model.dense(model.input(1, 64), weights, rng.standard_normal(10)))
    _, reasons, _ = layer(source, "INT2", dynamic_range)
    assert reasons == (
        [] if is_narrow else ["its weights are so small that runtimes refuse their scale, so they stay FLOAT32"]
    )
    result = convert(source, low_bit_weights="int2", dynamic_range=dynamic_range)
    litebnn.Interpreter(result).predict(np.ones((1, 64), np.float32))


def test_other_weights_stay_and_the_report_says_why() -> None:
    rng = np.random.default_rng(0)
    weights = ternary(rng, 8, 32)
    weights[3, 5] = 0.123
    model = FloatModel()
    kernel, [reason], _ = layer(model.finish(model.dense(model.input(1, 32), weights)))
    assert kernel.type == "FLOAT32"
    assert "other values than -alpha, 0 and alpha" in reason

    model = int8_dense(rng, 32, 8, weights)
    kernel, [reason], _ = layer(model.finish(*model.graph.outputs))
    assert kernel.type == "INT8"
    assert "so they stay INT8" in reason

    model = int8_dense(rng, 32, 8, np.sign(ternary(rng, 8, 32)), finest=1e-4)
    kernel, [reason], _ = layer(model.finish(*model.graph.outputs))
    assert kernel.type == "INT8"
    assert "its bias needs a finer scale" in reason


@pytest.mark.parametrize(("type", "dequantize", "dense_layer"), [("INT4", 6, 12), ("INT2", 7, 14)])
def test_ops_have_the_versions_in_which_runtimes_know_the_type(type: str, dequantize: int, dense_layer: int) -> None:
    source = dense(np.random.default_rng(0), 1, 64, 16)
    for dynamic_range, versions in ((False, [dequantize, 1]), (True, [dense_layer])):
        model = read_model(source)
        narrowed(model, type, dynamic_range)
        assert [op.code.version for op in model.ops()] == versions
    model = read_model(source)
    only_dense(model).code = OpCode("FULLY_CONNECTED", "", 99)
    narrowed(model, type, True)
    assert only_dense(model).code.version == 99


def test_the_bias_of_an_int8_layer_stays_what_it_is_worth() -> None:
    """In each channel, the scale of the INT2 weights is the scale of the int8 weights times the largest magnitude of
    their levels. The bias is rescaled in the same way, so that it stands for the same numbers.
    """
    steps = np.array([127, 64, 32])
    weights_of_rows = np.ones((3, 8)) * np.reshape([1, 0.5, 0.25], (3, 1))
    model = int8_dense(np.random.default_rng(0), 8, 3, weights_of_rows, finest=1e-4)
    built = model.model(*model.graph.outputs)
    op = only_dense(built)
    assert op.input(1).quantization is not None
    scale = op.input(1).quantization.scale
    model.graph.set_input(op, 2, model.const([-3, 0, 2] * steps, np.int32))
    narrowed(built, "INT2")
    weights, bias = op.input(1).quantization, op.input(2).quantization
    assert weights is not None
    assert bias is not None
    np.testing.assert_allclose(weights.scale, scale * steps, rtol=1e-6)
    np.testing.assert_allclose(bias.scale, weights.scale * np.float32(0.05), rtol=1e-6)
    np.testing.assert_array_equal(op.input(2).array, [-3, 0, 2])


def test_the_bias_of_an_int8_layer_is_rounded_to_the_nearest_step() -> None:
    """The tolerance is one int8 level of the output. It is at least one unit of the bias, whose rounding error is at
    most half a unit."""
    model = int8_dense(np.random.default_rng(0), 8, 3, np.ones((3, 8)))
    built = model.model(*model.graph.outputs)
    op = only_dense(built)
    model.graph.set_input(op, 2, model.const([-3 * 127 + 100, 63, 2 * 127 + 64], np.int32))
    narrowed(built, "INT2")
    np.testing.assert_array_equal(op.input(2).array, [-2, 0, 3])


@pytest.mark.parametrize(
    ("case", "reason"),
    [
        ("zero point", "its weights are not a symmetric int8 constant, so they stay INT8"),
        ("no grid", "its weights are not a symmetric int8 constant, so they stay INT8"),
        ("computed weights", "its weights are not a symmetric int8 constant, so they stay INT8"),
        ("float output", "its weights are not a symmetric int8 constant, so they stay INT8"),
        ("computed bias", "its bias is not an int32 constant, so they stay INT8"),
        ("int64 bias", "its bias is not an int32 constant, so they stay INT8"),
        ("int16 input", "its weights are not a float constant, so they stay INT8"),
    ],
)
def test_int8_layers_of_another_kind_stay_as_they_are(case: str, reason: str) -> None:
    model = int8_dense(np.random.default_rng(0), 8, 4, np.ones((4, 8)))
    built = model.model(*model.graph.outputs)
    op = only_dense(built)
    if case == "zero point":
        op.input(1).quantization = parameters(1 / 127, 1)
    elif case == "no grid":
        op.input(1).quantization = None
    elif case == "float output":
        op.output.type, op.output.quantization = "FLOAT32", None
    elif case == "int16 input":
        op.input(0).type = "INT16"
    elif case == "int64 bias":
        model.graph.set_input(op, 2, model.const(np.zeros(4), np.int64))
    else:
        place = 1 if case == "computed weights" else 2
        computed = model.input(*op.input(place).shape, type=op.input(place).type)
        computed.quantization = op.input(place).quantization
        model.graph.set_input(op, place, computed)
    inputs = list(op.inputs)
    notes = narrowed(built, "INT4")
    assert op.inputs == inputs
    notes.finish(built.graphs)
    assert list(notes.layers[0].reasons) == [reason]


def test_weights_that_the_source_has_shuffled_are_let_be() -> None:
    """The rule must not change weights in a shuffled format, because only the runtime knows their order."""
    model = read_model(dense(np.random.default_rng(0), 1, 64, 16))
    only_dense(model).options.weights_format = 1
    before = only_dense(model).inputs[:]
    notes = narrowed(model, "INT4")
    assert only_dense(model).inputs == before
    assert not notes.warnings


def test_a_layer_without_a_bias_needs_none() -> None:
    model = int8_dense(np.random.default_rng(0), 8, 6, np.sign(ternary(np.random.default_rng(0), 6, 8)))
    model.graph.set_input(model.graph.ops[0], 2, None)
    kernel, reasons, _ = layer(model.finish(*model.graph.outputs))
    assert (kernel.type, reasons) == ("INT2", [])


def test_verify_knows_that_dynamic_range_changes_results() -> None:
    source = dense(np.random.default_rng(0), 2, 256, 64)
    for dynamic_range, least, most in ((False, 0.0, 1e-5), (True, 1e-5, 0.05)):
        with pytest.warns(UserWarning, match="no binary layer"):
            _, report = litebnn.convert_tflite(
                source, low_bit_weights="int2", dynamic_range=dynamic_range, verify=True, return_report=True
            )
        assert least <= report.difference < most


def test_without_the_option_nothing_changes() -> None:
    source = dense(np.random.default_rng(0), 1, 64, 16)
    assert convert(source) == source
