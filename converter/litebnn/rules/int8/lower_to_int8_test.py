import numpy as np
import pytest

import litebnn
from litebnn.analysis.quantization import dequantized, parameters
from litebnn.flatbuffer import read_model
from litebnn.graph import Tensor
from litebnn.rules.build.int8 import int8_constant
from litebnn.rules.build.notes import Notes
from litebnn.rules.int8.lower_to_int8 import lower_to_int8
from tests.support.float_models import FloatModel, assert_same_values, op_names, rewritten, run_pass
from tests.support.quantized_models import TrainedModel

RNG = np.random.default_rng(0)


def to_int8(model: FloatModel, x: Tensor, scale: float = 0.5, zero_point: int = 3) -> Tensor:
    levels = model.op("QUANTIZE", [x], x.dims, type="INT8")
    levels.quantization = parameters(scale, zero_point)
    return levels


def fake(model: FloatModel, x: Tensor, scale: float = 0.5, zero_point: int = 3) -> Tensor:
    return model.op("DEQUANTIZE", [to_int8(model, x, scale, zero_point)], x.dims)


def test_weights_have_a_scale_for_each_output_channel() -> None:
    model = FloatModel()
    kernel = RNG.standard_normal((4, 3, 3, 2)) * np.array([1, 2, 4, 8]).reshape(4, 1, 1, 1)
    y = model.conv(fake(model, model.input(1, 5, 5, 2)), kernel, RNG.standard_normal(4))
    built = model.model(to_int8(model, y))
    changed, names = run_pass(lower_to_int8, built)
    assert changed
    assert names == ["QUANTIZE", "DEQUANTIZE", "CONV_2D"]
    op = built.graphs[0].ops[-1]
    weights, bias = op.input(1), op.input(2)
    np.testing.assert_allclose(weights.quantization.scale, np.abs(kernel).max(axis=(1, 2, 3)) / 127, rtol=1e-6)
    values = dequantized(weights)
    assert values is not None
    np.testing.assert_allclose(values, kernel, atol=0.51 * float(weights.quantization.scale.max()))
    np.testing.assert_allclose(bias.quantization.scale, 0.5 * weights.quantization.scale, rtol=1e-6)
    assert (bias.type, op.code.version) == ("INT32", 3)


@pytest.mark.parametrize(
    ("largest", "expected"),
    [((1.27, 0.0, 2.54, 1e-20), (0.01, 0.02 / 256, 0.02, 0.02 / 256)), ((0.0, 0.0, 0.0, 0.0), (1 / 127,) * 4)],
)
def test_a_channel_without_weights_has_a_scale_like_the_others(
    largest: tuple[float, ...], expected: tuple[float, ...]
) -> None:
    model = FloatModel()
    kernel = np.ones((4, 1, 1, 2)) * np.reshape(largest, (4, 1, 1, 1))
    y = model.conv(fake(model, model.input(1, 5, 5, 2)), kernel, np.full(4, 0.3))
    built = model.model(to_int8(model, y))
    run_pass(lower_to_int8, built)
    op = built.graphs[0].ops[-1]
    np.testing.assert_allclose(op.input(1).quantization.scale, expected, rtol=1e-6)
    bias = dequantized(op.input(2))
    assert bias is not None
    np.testing.assert_allclose(bias, 0.3, atol=0.5 * 0.02)


def test_a_bias_that_32_bits_do_not_hold_is_said() -> None:
    model = FloatModel()
    y = model.dense(fake(model, model.input(1, 2), scale=1e-9), np.ones((4, 2)), np.full(4, 100.0))
    built = model.model(to_int8(model, y))
    notes = Notes(built)
    assert not lower_to_int8(built.graphs[0], notes)
    assert list(notes.warnings) == [f"{y.name}: it stays float, for its bias does not fit into 32 bits"]


def test_an_op_with_a_float_neighbour_stays_float() -> None:
    model = FloatModel()
    x = model.input(1, 4)
    assert not run_pass(
        lower_to_int8, model.model(to_int8(model, model.elementwise("ADD", x, model.const(np.ones(4)))))
    )[0]
    model = FloatModel()
    x = fake(model, model.input(1, 4))
    assert not run_pass(lower_to_int8, model.model(model.elementwise("ADD", x, x)))[0]


def test_a_softmax_writes_its_own_grid_and_others_are_made_of_that() -> None:
    for scale, zero_point, follows in ((1 / 256, -128, []), (1 / 255, -128, ["QUANTIZE"]), (1 / 256, 0, ["QUANTIZE"])):
        model = FloatModel()
        x = model.op("SOFTMAX", [fake(model, model.input(1, 4))], (1, 4))
        built = model.model(to_int8(model, x, scale, zero_point))
        changed, names = run_pass(lower_to_int8, built)
        assert (changed, names) == (True, ["QUANTIZE", "DEQUANTIZE", "SOFTMAX", *follows])
        assert built.graphs[0].ops[2].output.per_tensor_quantization == (1 / 256, -128)
        assert built.graphs[0].outputs[0].per_tensor_quantization == pytest.approx((scale, zero_point))


@pytest.mark.parametrize("has_bias", [True, False])
@pytest.mark.parametrize("shape", [(3, 4), (2, 3, 4), (6, 2)])
def test_a_dense_layer_with_a_scale_for_each_channel_becomes_a_convolution(
    shape: tuple[int, ...], has_bias: bool
) -> None:
    """Older runtimes use only the first scale of a FULLY_CONNECTED."""
    model = FloatModel()
    levels = RNG.integers(-5, 5, (3, 4))
    kernel = model.op("DEQUANTIZE", [int8_constant("kernel", levels, [1, 0.5, 2])], (3, 4), version=2)
    x = fake(model, model.input(*shape))
    rows = int(np.prod(shape)) // 4
    bias = model.const([1.0, -2.0, 3.0]) if has_bias else None
    y = model.op("FULLY_CONNECTED", [x, kernel, bias], (rows, 3), fused_activation_function=1)
    source = model.finish(model.op("DEQUANTIZE", [to_int8(model, y)], y.dims, version=2))
    result = rewritten(source, lower_to_int8)
    assert op_names(result)[-4:] == ["RESHAPE", "CONV_2D", "RESHAPE", "DEQUANTIZE"]
    assert_same_values(source, result)


def test_scales_that_a_runtime_refuses_are_coarser_than_those_of_the_training() -> None:
    model = FloatModel()
    stored = int8_constant("kernel", np.full((2, 1, 1, 4), 64e-6) * [[[[1]]], [[[1e6]]]], [1e-6, 1.0])
    kernel = model.op("DEQUANTIZE", [stored], stored.shape)
    built = model.model(to_int8(model, model.conv(fake(model, model.input(1, 3, 3, 4)), kernel)))
    run_pass(lower_to_int8, built)
    weights = built.graphs[0].ops[-1].input(1)
    assert weights.quantization is not None
    np.testing.assert_allclose(weights.quantization.scale, [1 / 256, 1.0])
    values = dequantized(weights)
    assert values is not None
    np.testing.assert_allclose(values[0], 0, atol=1 / 256)


@pytest.mark.parametrize(
    ("reads", "writes", "zero_point", "reason"),
    [
        (True, False, 0, "it stays float, for its output has no fake quantization"),
        (False, True, 0, "it stays float, for its input has no fake quantization"),
        (False, False, 0, "it stays float, for its input and output have no fake quantization"),
        (True, True, 1, "it stays float, for its int8 weights have a zero point"),
    ],
)
def test_a_layer_that_stays_float_after_its_weights_were_trained_says_why(
    reads: bool, writes: bool, zero_point: int, reason: str
) -> None:
    model = FloatModel()
    x = model.input(1, 4)
    x = fake(model, x) if reads else x
    kernel = model.op("DEQUANTIZE", [int8_constant("kernel", np.ones((3, 4)), 0.5, zero_point)], (3, 4))
    y = model.op("FULLY_CONNECTED", [x, kernel, None], (1, 3))
    built = model.model(to_int8(model, y) if writes else y)
    notes = Notes(built)
    assert not lower_to_int8(built.graphs[0], notes)
    assert [*notes.layers[0].reasons] == [reason]


@pytest.mark.usefixtures("library")
@pytest.mark.filterwarnings("ignore:no binary layer")
@pytest.mark.parametrize("has_bias", [True, False])
@pytest.mark.parametrize("activation", ["none", "relu"])
def test_a_trained_transposed_convolution_becomes_int8(has_bias: bool, activation: str) -> None:
    model = TrainedModel()
    kernel = model.fake_weights(RNG.integers(-3, 4, (8, 3, 3, 4)), RNG.choice([0.25, 0.5], 8))
    bias = RNG.integers(-8, 9, 8) / 8 if has_bias else None
    x = model.transposed_conv(model.fake(model.input(1, 5, 5, 4), (1 / 16, 3)), kernel, bias, activation=activation)
    source = model.finish(model.fake(x, (0.3, -20)))
    converted, report = litebnn.convert_tflite(source, return_report=True)
    types = {op.name: op.output.type for op in read_model(converted).ops()}
    assert types == {"QUANTIZE": "INT8", "TRANSPOSE_CONV": "INT8", "DEQUANTIZE": "FLOAT32"}
    assert report.layers[0].output == "INT8"
    sample = RNG.standard_normal((1, 5, 5, 4)).astype(np.float32)
    expected, actual = (litebnn.Interpreter(each).predict(sample) for each in (source, converted))
    np.testing.assert_allclose(actual, expected, rtol=0, atol=0.301)
    assert np.mean(actual != expected) < 0.01


def test_what_is_joined_gets_one_grid() -> None:
    model = FloatModel()
    a, b = (fake(model, model.input(1, 4), scale) for scale in (0.5, 0.25))
    x = model.op("CONCATENATION", [a, b], (1, 8))
    _, names = run_pass(lower_to_int8, model.model(to_int8(model, x)))
    assert names == ["QUANTIZE", "DEQUANTIZE", "QUANTIZE", "DEQUANTIZE", "QUANTIZE", "CONCATENATION"]


def test_what_is_on_the_goals_grid_already_is_joined_as_it_is() -> None:
    model = FloatModel()
    a, b = (fake(model, model.input(1, 4), scale, 3) for scale in (0.5, 0.25))
    x = model.op("CONCATENATION", [a, b], (1, 8))
    built = model.model(to_int8(model, x, 0.5, 3))
    run_pass(lower_to_int8, built)
    [joined] = [op for op in built.ops() if op.name == "CONCATENATION"]
    assert [tensor.per_tensor_quantization for tensor in joined.inputs if tensor is not None] == [(0.5, 3)] * 2
    requantized = [op for op in built.ops() if op.name == "QUANTIZE" and op.input(0).type == "INT8"]
    assert [op.output for op in requantized] == [joined.input(1)]


def test_what_moves_values_goes_before_what_makes_floats_of_them() -> None:
    """If an op that only moves values becomes int8, its other inputs, such as axes and sizes, stay the same."""
    for name in ("RESHAPE", "LOGISTIC"):
        model = FloatModel()
        x = fake(model, model.input(1, 4))
        y = model.reshape(x, 4, 1) if name == "RESHAPE" else model.op(name, [x], x.dims)
        shape = model.graph.ops[-1].optional(1)
        built = model.model(y)
        changed, names = run_pass(lower_to_int8, built)
        if name == "LOGISTIC":
            assert (changed, names) == (False, ["QUANTIZE", "DEQUANTIZE", name])
            continue
        assert (changed, names) == (True, ["QUANTIZE", "DEQUANTIZE", name, "DEQUANTIZE"])
        moved, last = built.graphs[0].ops[2:]
        assert (moved.input(0).type, moved.optional(1), moved.output.type) == ("INT8", shape, "INT8")
        assert moved.output.per_tensor_quantization == (0.5, 3)
        assert (last.input(0), last.output) == (moved.output, y)


@pytest.mark.parametrize("value", [0.75, np.nan, np.inf])
def test_a_constant_operand_gets_a_grid_of_its_own(value: float) -> None:
    model = FloatModel()
    x = model.elementwise("ADD", fake(model, model.input(1, 4)), model.const([-2.0, 0.5, value, 1.0]))
    built = model.model(to_int8(model, x))
    assert run_pass(lower_to_int8, built)[0] is bool(np.isfinite(value))
    if np.isfinite(value):
        operand = built.graphs[0].ops[-1].input(1)
        assert operand.per_tensor_quantization == (pytest.approx(3 / 255), 42)
        np.testing.assert_allclose(dequantized(operand), [-2.0, 0.5, value, 1.0], atol=1.5 / 255)


def test_what_is_computed_of_constants_alone_stays_float() -> None:
    model = FloatModel()
    x = model.elementwise("ADD", model.const(np.ones(4)), model.const(np.ones(4)))
    assert not run_pass(lower_to_int8, model.model(to_int8(model, x)))[0]


@pytest.mark.parametrize(
    ("case", "lowered"),
    [
        ("", True),
        ("zero point", False),
        ("another axis", False),
        ("no grid", False),
        ("not finite", False),
        ("computed", False),
    ],
)
def test_weights_that_int8_layers_do_not_take_leave_the_layer_float(case: str, lowered: bool) -> None:
    model = FloatModel()
    values = np.full((4, 1, 1, 2), np.inf if case == "not finite" else 3.0)
    kernel = model.const(values)
    if case != "not finite":
        stored = int8_constant("kernel", values, [0.5, 0.25, 1.0, 2.0], 0, 0)
        assert stored.quantization is not None
        if case == "zero point":
            stored.quantization.zero_point[2] = 1
        elif case == "another axis":
            stored.quantization = parameters([0.5, 0.25], 0, 3)
        elif case == "no grid":
            stored.quantization = None
        elif case == "computed":
            stored = model.input(4, 1, 1, 2, type="INT8")
            stored.quantization = parameters([0.5, 0.25, 1.0, 2.0])
        kernel = model.op("DEQUANTIZE", [stored], (4, 1, 1, 2))
    y = model.conv(fake(model, model.input(1, 5, 5, 2)), kernel)
    assert run_pass(lower_to_int8, model.model(to_int8(model, y)))[0] is lowered
