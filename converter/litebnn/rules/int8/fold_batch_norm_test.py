import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import litebnn
from litebnn.analysis.quantization import parameters
from litebnn.flatbuffer import read_model
from litebnn.graph import Array, Tensor
from litebnn.report.macs import count_macs
from litebnn.rules.build.notes import Notes
from litebnn.rules.int8.fold_batch_norm import fold_batch_norm
from tests.support.float_models import FloatModel, assert_same_values, op_names, rewritten
from tests.support.quantized_models import TrainedModel

RNG = np.random.default_rng(0)
GRID = (1 / 8, 0)
SHAPES = {"conv": (8, 3, 3, 8), "depthwise": (1, 3, 3, 8), "dense": (8, 8), "transposed": (8, 3, 3, 8)}


def trained(model: TrainedModel, x: Tensor, layer: str, scales: Array, levels: Array | None = None) -> Tensor:
    """Adds a layer of 8 channels. Its weights are small enough for sums without rounding."""
    levels = RNG.integers(-7, 8, SHAPES[layer]) if levels is None else levels
    weights = model.fake_weights(levels, scales, axis=3 if layer == "depthwise" else 0)
    if layer == "dense":
        return model.dense(x, weights, None)
    add = {"conv": model.conv, "depthwise": model.depthwise_conv, "transposed": model.transposed_conv}[layer]
    return add(x, weights, np.arange(8) / 8, same=True)


def image(model: FloatModel, layer: str) -> Tensor:
    return model.input(2, 8) if layer == "dense" else model.input(1, 5, 5, 8)


@st.composite
def norms(draw: st.DrawFn) -> list[tuple[str, list[float], bool, str]]:
    """Ops by constants that are powers of two: name, constants, which side the layer is on, activation."""
    ops = []
    for _ in range(draw(st.integers(1, 3))):
        name = draw(st.sampled_from(("MUL", "ADD", "SUB", "DIV")))
        size = draw(st.sampled_from((1, 8)))
        numbers = st.sampled_from((-2.0, -0.5, 0.25, 1.0, 4.0) + (() if name == "DIV" else (0.0,)))
        ops.append((name, draw(st.lists(numbers, min_size=size, max_size=size)), name == "DIV" or draw(st.booleans())))
    last = draw(st.sampled_from(("none", "relu", "relu6", "relu1")))
    return [(*op, "none" if op is not ops[-1] else last) for op in ops]


@pytest.mark.parametrize("layer", SHAPES)
@given(norms(), st.booleans())
@settings(max_examples=15)
def test_a_batch_norm_becomes_scales_and_bias(
    layer: str, norm: list[tuple[str, list[float], bool, str]], has_scales: bool
) -> None:
    model = TrainedModel()
    scales = np.float32(2.0) ** (RNG.integers(-3, 1, 8) if has_scales else np.array([-2]))
    x = trained(model, image(model, layer), layer, scales)
    for name, numbers, left, activation in norm:
        constants = model.const(numbers)
        x = model.elementwise(name, *((x, constants) if left else (constants, x)), activation=activation)
    source = model.finish(x)
    result = rewritten(source, *[fold_batch_norm] * len(norm))
    assert len(op_names(result)) == 2
    assert_same_values(source, result)


@pytest.mark.parametrize("clamp", ["RELU", "RELU6", "RELU_N1_TO_1"])
def test_a_clamp_is_fused(clamp: str) -> None:
    model = TrainedModel()
    x = trained(model, image(model, "conv"), "conv", np.array([0.25]))
    source = model.finish(model.elementwise(clamp, model.elementwise("MUL", x, model.const([0.5]))))
    result = rewritten(source, fold_batch_norm, fold_batch_norm)
    assert op_names(result) == ["DEQUANTIZE", "CONV_2D"]
    assert_same_values(source, result)


def test_the_weights_keep_the_integers_of_the_training() -> None:
    model = TrainedModel()
    levels = RNG.integers(-127, 128, SHAPES["conv"])
    x = trained(model, image(model, "conv"), "conv", np.array([0.01]), levels)
    factors = np.array([0.3, -1.7, 1e-3, -2e-4, 5.0, 0.0, 1e-44, 1.0])
    source = model.finish(model.elementwise("MUL", x, model.const(factors)))
    weights = rewritten(source, fold_batch_norm).graphs[0].ops[0].input(0)
    assert weights.array is not None
    assert weights.quantization is not None
    expected = levels * np.sign(factors).reshape(-1, 1, 1, 1)
    expected[5:7] = 0
    np.testing.assert_array_equal(weights.array, expected)
    kept = [0, 1, 2, 3, 4, 7]
    np.testing.assert_allclose(weights.quantization.scale[kept], 0.01 * np.abs(factors[kept]), rtol=1e-6)
    assert np.all(weights.quantization.scale > 0)


def test_a_weight_that_cannot_be_negated_is_a_reason() -> None:
    model = TrainedModel()
    levels = np.ones(SHAPES["dense"])
    levels[3, 2] = -128
    x = trained(model, image(model, "dense"), "dense", np.array([0.5]), levels)
    built = model.model(model.elementwise("MUL", x, model.const([1, 1, 1, -1, 1, 1, 1, 1])))
    notes = Notes(built)
    assert not fold_batch_norm(built.graphs[0], notes)
    assert [*notes.layers[0].reasons] == [
        "a batch norm with a negative multiplier cannot negate its int8 weights of -128"
    ]


@pytest.mark.parametrize("other", ["reader", "output", "activation", "weights", "huge", "map"])
def test_an_op_that_cannot_be_folded_stays(other: str) -> None:
    model = TrainedModel()
    x = trained(model, image(model, "conv"), "conv", np.array([16.0]))
    if other == "activation":
        model.graph.ops[-1].options.fused_activation_function = 1
    factor = {"huge": np.full(8, 1e38), "map": np.ones((1, 5, 5, 8))}.get(other, np.full(8, 0.5))
    outputs = [model.elementwise("MUL", x, model.const(factor))]
    if other in ("reader", "output"):
        outputs.append(x if other == "output" else model.elementwise("NEG", x))
    if other == "weights":
        outputs.append(model.conv(model.graph.inputs[0], model.graph.ops[0].output))
    assert len(op_names(rewritten(model.finish(*outputs), fold_batch_norm))) == len(model.graph.ops)


def test_a_network_of_fake_quantization_is_int8_all_through() -> None:
    """Batch norms with negative multipliers around a residual block, depthwise and dense layers."""
    model, grid = TrainedModel(), (6 / 255, -128)
    rng = np.random.default_rng(1)

    def normed(x: Tensor, activation: str) -> Tensor:
        scaled = model.elementwise("MUL", x, model.const(rng.uniform(-1, 1, 8)))
        return model.elementwise("ADD", scaled, model.const(rng.uniform(0, 2, 8)), activation=activation)

    scale = np.array([0.02])
    first = model.fake(image(model, "conv"), (1 / 32, 0))
    x = model.fake(normed(trained(model, first, "conv", scale), "relu6"), grid)
    y = model.fake(normed(trained(model, x, "depthwise", scale), "none"), (6 / 255, 0))
    x = model.fake(model.elementwise("ADD", x, y, activation="relu"), grid)
    x = model.fake(model.op("MEAN", [x, model.const([1, 2], np.int32)], (1, 8), keep_dims=False), grid)
    x = model.fake(normed(trained(model, x, "dense", scale), "relu"), grid)
    source = model.finish(x)
    with pytest.warns(UserWarning, match="no binary layer"):
        result, report = litebnn.convert_tflite(source, return_report=True, verify=True)
    ops = read_model(result).graphs[0].ops
    assert [op.name for op in ops if op.output.type == "FLOAT32"] == ["DEQUANTIZE"]
    assert not {"MUL", "FULLY_CONNECTED"} & {op.name for op in ops}
    assert report.status == "converted to int8"
    assert {layer.output for layer in report.layers} == {"INT8"}
    assert "3 of 3 layers and 100.0%" in report.summary()
    inputs = rng.normal(0, 2, (20, 1, 5, 5, 8)).astype(np.float32)
    expected, actual = (np.stack([*map(litebnn.Interpreter(each).predict, inputs)]) for each in (source, result))
    assert np.ptp(expected) > 1
    assert np.abs(actual - expected).max() <= 2.5 * grid[0]


def quantized_weights(model: TrainedModel, levels: Array, shape: tuple[int, ...]) -> Tensor:
    """Adds weights as TensorFlow's converter writes them: quantized at run time, and without a shape if dense."""
    stored = model.op("QUANTIZE", [model.const(levels / 8)], shape, type="UINT8")
    stored.quantization = parameters(1 / 8, 128)
    return model.op("DEQUANTIZE", [stored], stored.dims)


def test_the_work_of_a_dense_layer_whose_weights_have_no_shape_in_the_file() -> None:
    model = TrainedModel()
    x = model.fake(model.input(1, 12), GRID)
    weights = quantized_weights(model, RNG.integers(-9, 9, (10, 12)), ())
    y = model.op("FULLY_CONNECTED", [x, weights, None], (1, 10))
    source = model.finish(model.fake(y, GRID))
    assert count_macs(source) == (0, 0, 120)
    with pytest.warns(UserWarning, match="no binary layer"):
        result, report = litebnn.convert_tflite(source, return_report=True)
    [layer] = report.layers
    assert (layer.macs, layer.bytes_before, layer.bytes_after) == (120, 480, 120)
    assert count_macs(result) == (0, 120, 0)


def test_weights_alone_that_were_trained_are_stored_as_int8() -> None:
    model = TrainedModel()
    weights = quantized_weights(model, RNG.integers(-9, 9, SHAPES["conv"]), SHAPES["conv"])
    source = model.finish(
        model.elementwise("MUL", model.conv(image(model, "conv"), weights), model.const(np.full(8, 0.5)))
    )
    with pytest.warns(UserWarning, match="no binary layer"):
        result, report = litebnn.convert_tflite(source, return_report=True)
    assert op_names(result) == ["DEQUANTIZE", "CONV_2D"]
    assert report.status == "no binary layer"
    assert len(result) < len(source)
    assert (report.layers[0].bytes_before, report.layers[0].bytes_after) == (4 * (576 + 8), 576 + 4 * 8)
    assert "it stays float, for its input and output have no fake quantization" in report.layers[0].reasons
    assert_same_values(source, read_model(result))


def test_a_model_that_is_quantized_only_at_its_border_is_copied() -> None:
    """Nothing in it can become int8."""
    model = TrainedModel()
    source = model.finish(model.conv(model.fake(image(model, "conv"), GRID), RNG.normal(size=SHAPES["conv"])))
    with pytest.warns(UserWarning, match="no binary layer"):
        assert litebnn.convert_tflite(source) == source
