from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import litebnn
from litebnn.build.bconv import bconv_options
from litebnn.build.notes import Notes
from litebnn.contract import Padding, PadValues, unpack_bits
from litebnn.flatbuffer import read_model, write_model
from litebnn.graph import Tensor, constant
from litebnn.report.differences.divergence import LayerComparison
from litebnn.rules import BINARY_PHASES, run_phases
from litebnn.rules.binarize.binarize_layers import binarize_layers
from litebnn.rules.binarize.undo_space_to_batch import undo_space_to_batch
from litebnn.rules.canonical.remove_dead_ops import remove_dead_ops
from litebnn.rules.thresholds.lower_thresholds import lower_thresholds
from litebnn.rules.thresholds.merge_signs import merge_signs
from litebnn.rules.thresholds.recognize_signs import recognize_signs
from tests.support.float_models import FloatModel, assert_same_values, op_names, rewritten, sign_weights
from tests.support.level_spellings import LEVELS, booleans, dorefa, ternary
from tests.support.quantized_models import EXACT_GRID, Int8Model

RNG = np.random.default_rng(0)
PACKING = ["CONCATENATION", "ADD", "LceQuantize"]


def converted(model: FloatModel, output: Any) -> tuple[Any, Notes]:
    built = model.model(output)
    notes = Notes(built)
    recognize_signs(built.graphs[0], notes)
    binarize_layers(built.graphs[0], notes)
    return next((op for op in built.graphs[0].ops if op.name == "LceBconv2d"), None), notes


def test_weights_come_apart_into_signs_and_magnitudes() -> None:
    weights = sign_weights(RNG, 8, 3, 3, 40)
    model = FloatModel()
    op, _ = converted(model, model.conv(model.sign(model.input(1, 6, 6, 40)), weights, np.arange(8)))
    signs = np.where(unpack_bits(op.input(1).array, 40), -1.0, 1.0)
    np.testing.assert_array_equal(signs * op.input(2).array.reshape(-1, 1, 1, 1), weights)
    np.testing.assert_array_equal(op.input(3).array, np.arange(8))
    assert bconv_options(op).channels_in == 40


def test_constants_are_called_after_the_weights() -> None:
    model = FloatModel()
    kernel = model.const(sign_weights(RNG, 8, 3, 3, 32))
    op, _ = converted(model, model.conv(model.sign(model.input(1, 6, 6, 32)), kernel, np.arange(8)))
    assert all(tensor.name.startswith(kernel.name) for tensor in op.inputs[1:] if tensor is not None)


@pytest.mark.parametrize("size", [8, -1])
def test_same_padding_that_is_none_at_this_size_stays_same(size: int) -> None:
    """SAME adds no pixels at this size, but it would add pixels after the model's input is resized."""
    model = FloatModel()
    x = model.sign(model.input(1, 8, 8, 32, signature=(1, size, size, 32)))
    op, _ = converted(model, model.conv(x, sign_weights(RNG, 8, 2, 2, 32), same=True, stride=(2, 2)))
    assert bconv_options(op).padding == Padding.SAME


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda w: np.where(np.arange(w.size).reshape(w.shape) == 5, 0, w), "contain zeros"),
        (lambda w: np.where(np.arange(w.size).reshape(w.shape) == 5, 0.9 * w, w), "not ±alpha"),
        (lambda w: np.where(np.arange(w.size).reshape(w.shape) == 5, np.nan, w), "not finite"),
        (lambda w: 0 * w, "all zero"),
        (lambda w: w[..., :20], "a multiple of 32"),
        (lambda w: w[..., :24], "does not divide"),
    ],
)
def test_other_weights_stay_float(change: Any, reason: str) -> None:
    weights = change(sign_weights(RNG, 8, 3, 3, 40)).astype(np.float32)
    model = FloatModel()
    op, notes = converted(model, model.conv(model.sign(model.input(1, 6, 6, 40)), weights))
    assert op is None
    assert reason in " ".join(notes.layers[0].reasons)


def test_a_float_input_and_weights_that_are_not_constant_stay_float() -> None:
    model = FloatModel()
    x = model.input(1, 6, 6, 32)
    op, notes = converted(model, model.conv(x, sign_weights(RNG, 8, 3, 3, 32)))
    assert op is None
    assert list(notes.layers[0].reasons) == ["its input is not the output of a sign"]
    model = FloatModel()
    kernel = model.input(8, 3, 3, 32)
    op, notes = converted(model, model.conv(model.sign(model.input(1, 6, 6, 32)), kernel))
    assert op is None
    assert list(notes.layers[0].reasons) == ["its weights are not a float constant"]


def test_weights_shared_by_two_layers_serve_both() -> None:
    model = FloatModel()
    kernel = model.const(sign_weights(RNG, 32, 3, 3, 32))
    x = model.sign(model.input(1, 8, 8, 32))
    built = model.model(model.conv(x, kernel), model.conv(model.sign(model.conv(x, kernel)), kernel))
    notes = Notes(built)
    recognize_signs(built.graphs[0], notes)
    binarize_layers(built.graphs[0], notes)
    assert [layer.binary for layer in notes.layers] == [True, True, True]


def test_a_depthwise_convolution_says_why_not() -> None:
    with pytest.warns(UserWarning, match="no binary layer"):
        _, report = litebnn.convert_tflite(Path("tests/golden/depthwise.float.tflite"), return_report=True)
    assert "no binary DEPTHWISE_CONV_2D" in " ".join(report.layers[0].reasons)


@pytest.mark.parametrize("between", ["pool", "reshape"])
def test_a_depthwise_convolution_of_int8_signs_that_are_moved(between: str) -> None:
    model = Int8Model()
    x = model.sign8(model.input8((1 / 16, -40), 1, 6, 6, 32), "where", EXACT_GRID)
    x = model.pool8(x) if between == "pool" else model.reshape8(x, 1, 4, 9, 32)
    source = model.finish(model.depthwise_conv8(x, sign_weights(RNG, 1, 3, 3, 32), np.arange(32), (1 / 8, 0), stride=1))
    with pytest.warns(UserWarning, match="no binary layer"):
        _, report = litebnn.convert_tflite(source, return_report=True)
    assert list(report.layers[0].reasons) == ["there is no binary DEPTHWISE_CONV_2D"]


def padded_conv(value: float | None, amounts: list[tuple[int, int]], *, same: bool = False, stride: int = 1) -> bytes:
    model = FloatModel()
    x = model.pad(model.sign(model.input(1, 6, 8, 32)), amounts, value)
    weights = sign_weights(RNG, 8, 3, 3, 32)
    return model.finish(model.conv(x, weights, same=same, stride=(stride, stride)))


@pytest.mark.usefixtures("library")
@pytest.mark.parametrize(
    ("amounts", "same", "stride", "explicit"),
    [
        ([(1, 1), (1, 1)], False, 1, None),
        ([(0, 1), (0, 1)], False, 2, None),
        ([(1, 1), (1, 1)], False, 2, ((1, 1), (1, 1))),
        ([(2, 0), (1, 1)], False, 1, ((2, 0), (1, 1))),
        ([(0, 0), (3, 7)], False, 1, ((0, 0), (3, 7))),
        ([(1, 2), (0, 1)], True, 1, ((2, 3), (1, 2))),
    ],
)
@pytest.mark.parametrize("value", [None, 0.0])
def test_zeros_around_the_sign_are_same_padding_or_explicit(
    value: float | None, amounts: Any, same: bool, stride: int, explicit: Any
) -> None:
    source = padded_conv(value, amounts, same=same, stride=stride)
    result = rewritten(source, recognize_signs, binarize_layers, remove_dead_ops)
    assert op_names(result)[-2:] == ["LceQuantize", "LceBconv2d"]
    options = bconv_options(result.graphs[0].ops[-1])
    assert (options.explicit_padding, options.pad_values) == (explicit, PadValues.ZERO)
    assert explicit is not None or options.padding == Padding.SAME
    assert_same_values(source, result)


def test_padding_that_is_no_sign_is_a_reason() -> None:
    built = read_model(padded_conv(0.5, [(1, 1), (1, 1)]))
    notes = Notes(built)
    recognize_signs(built.graphs[0], notes)
    assert not binarize_layers(built.graphs[0], notes)
    assert "padded with 0.5, which is neither 0 nor ±1" in " ".join(notes.layers[0].reasons)


def test_a_dense_layer_is_a_1x1_convolution() -> None:
    weights = sign_weights(RNG, 10, 100)
    model = FloatModel()
    built = model.model(model.dense(model.sign(model.input(4, 100)), weights, np.arange(10)))
    notes = Notes(built)
    recognize_signs(built.graphs[0], notes)
    assert binarize_layers(built.graphs[0], notes)
    assert op_names(built)[-3:] == ["RESHAPE", "LceBconv2d", "RESHAPE"]
    op = built.graphs[0].ops[-2]
    assert op.input(0).dims == (4, 1, 1, 4)
    assert op.output.dims == (4, 1, 1, 10)
    words, alpha = op.input(1).array, op.input(2).array
    assert words is not None
    assert alpha is not None
    signs = np.where(unpack_bits(words, 100), -1.0, 1.0).reshape(10, 100)
    np.testing.assert_array_equal(signs * alpha[:, None], weights)


@pytest.mark.parametrize(
    ("weights", "reason"),
    [
        (np.where(np.arange(1000).reshape(10, 100) == 7, 0, sign_weights(RNG, 10, 100)), "contain zeros"),
        (RNG.standard_normal((10, 100)), "not ±alpha"),
        (sign_weights(RNG, 10, 50), "rows of 50"),
    ],
)
def test_other_dense_layers_stay_float(weights: np.ndarray, reason: str) -> None:  # type: ignore[type-arg]
    model = FloatModel()
    built = model.model(model.dense(model.sign(model.input(2, 100)), weights))
    notes = Notes(built)
    run_phases(built, BINARY_PHASES, notes)
    assert "FULLY_CONNECTED" in op_names(built)
    assert reason in " ".join(notes.layers[0].reasons)


@pytest.mark.parametrize("batch", [2, -1])
def test_each_row_of_a_layer_that_keeps_its_axes_is_a_pixel(batch: int) -> None:
    model = FloatModel()
    x = model.sign(model.input(2, 5, 32, signature=(batch, 5, 32)))
    weights = model.const(sign_weights(np.random.default_rng(0), 8, 32))
    built = model.model(model.op("FULLY_CONNECTED", [x, weights, None], (batch, 5, 8), keep_num_dims=True))
    run_phases(built, BINARY_PHASES, Notes(built))
    [layer] = [op for op in built.ops() if op.name == "LceBconv2d"]
    rows = 10 if batch == 2 else -1
    assert (layer.input(0).dims, layer.output.dims) == ((rows, 1, 1, 1), (rows, 1, 1, 8))
    assert built.graphs[0].outputs[0].dims == (batch, 5, 8)


@pytest.mark.usefixtures("library")
@pytest.mark.parametrize("transposed", [False, True])
def test_a_product_with_a_constant_matrix_is_a_dense_layer(transposed: bool) -> None:
    weights = sign_weights(RNG, 10, 64)
    model = FloatModel()
    matrix = model.const(weights if transposed else weights.T)
    product = model.op("BATCH_MATMUL", [model.sign(model.input(1, 64)), matrix], (1, 10), adj_y=transposed)
    source = model.finish(product)
    result = rewritten(source, recognize_signs, binarize_layers)
    layer = result.graphs[0].ops[-2]
    assert layer.name == "LceBconv2d"
    words, alpha = layer.input(1).array, layer.input(2).array
    assert words is not None
    assert alpha is not None
    signs = np.where(unpack_bits(words, 64), -1.0, 1.0).reshape(10, 64)
    np.testing.assert_array_equal(signs * alpha[:, None], weights)
    assert_same_values(source, result)


def test_a_kernel_whose_sign_is_left_as_ops_becomes_binary() -> None:
    model = FloatModel()
    kernel = model.sign(model.const(RNG.standard_normal((64, 10))))
    built = model.model(model.op("BATCH_MATMUL", [model.sign(model.input(1, 64)), kernel], (1, 10)))
    notes = Notes(built)
    run_phases(built, BINARY_PHASES, notes)
    assert op_names(built) == ["LceQuantize", "RESHAPE", "LceBconv2d", "RESHAPE"]
    assert notes.layers[0].binary
    assert notes.layers[0].macs == 640


_WHY_NOT = ("constant float matrix", "not ±alpha", "not the output", "more than one dimension")


def test_other_products_stay_and_say_why() -> None:
    model = FloatModel()
    x, rows = model.sign(model.input(1, 64)), model.sign(model.input(1, 1, 64, signature=(-1, -1, 64)))
    products = [
        model.op("BATCH_MATMUL", [x, model.input(64, 10)], (1, 10)),
        model.op("BATCH_MATMUL", [x, model.const(RNG.standard_normal((64, 10)))], (1, 10)),
        model.op("BATCH_MATMUL", [model.input(1, 64), model.const(sign_weights(RNG, 64, 10))], (1, 10)),
        model.op("BATCH_MATMUL", [rows, model.const(np.ones((64, 10)))], (-1, -1, 10)),
    ]
    built = model.model(*products)
    notes = Notes(built)
    recognize_signs(built.graphs[0], notes)
    assert not binarize_layers(built.graphs[0], notes)
    reasons = [" ".join(layer.reasons) for layer in notes.layers]
    for reason, expected in zip(reasons, _WHY_NOT, strict=True):
        assert expected in reason


@pytest.mark.usefixtures("library")
@pytest.mark.parametrize("spelling", LEVELS)
@pytest.mark.parametrize("same", [False, True])
def test_a_layer_of_levels_is_one_of_signs(spelling: str, same: bool) -> None:
    model = FloatModel()
    levels = LEVELS[spelling](model, model.input(2, 5, 6, 40))
    source = model.finish(model.conv(levels, sign_weights(RNG, 8, 3, 3, 40), np.arange(8), same=same))
    result = rewritten(source, binarize_layers, merge_signs, lower_thresholds, remove_dead_ops)
    assert op_names(result)[-3:] == ["ADD", "LceQuantize", "LceBconv2d"]
    options = bconv_options(result.graphs[0].ops[-1])
    assert options.channels_in == (80 if "ternary" in spelling else 120)
    expected = (Padding.SAME, PadValues.ONE) if same else (Padding.VALID, PadValues.ZERO)
    assert (options.padding, options.pad_values) == expected
    assert_same_values(source, result)


@pytest.mark.usefixtures("library")
def test_zeros_that_an_op_puts_around_levels_are_ones_around_signs() -> None:
    model = FloatModel()
    padded = model.pad(dorefa(model, model.input(1, 5, 6, 32)), [(2, 0), (1, 1)])
    source = model.finish(model.conv(padded, sign_weights(RNG, 8, 3, 3, 32), stride=(2, 2)))
    result = rewritten(source, binarize_layers, merge_signs, lower_thresholds, remove_dead_ops)
    assert op_names(result) == [PACKING[0], "MUL", *PACKING[1:], "LceBconv2d"]
    options = bconv_options(result.graphs[0].ops[-1])
    assert (options.explicit_padding, options.pad_values) == (((2, 0), (1, 1)), PadValues.ONE)
    assert_same_values(source, result)


@pytest.mark.usefixtures("library")
@pytest.mark.parametrize(("padded", "cropped"), [(2, 0), (2, 1), (0, 1)])
def test_dilations_that_are_written_as_a_space_to_batch_pair(padded: int, cropped: int) -> None:
    model = FloatModel()
    level = dorefa(model, model.input(1, 8, 8, 32))
    blocks = model.space_to_batch(level, (2, 2), ((padded, 2), (2, 2)))
    spread = model.conv(blocks, sign_weights(RNG, 8, 3, 3, 32), np.arange(8))
    source = model.finish(model.batch_to_space(spread, (2, 2), ((cropped, 1), (0, 0))))
    result = rewritten(source, undo_space_to_batch, binarize_layers, merge_signs, lower_thresholds, remove_dead_ops)
    options = bconv_options(result.graphs[0].ops[-1])
    assert (options.dilation_height_factor, options.dilation_width_factor) == (2, 2)
    assert options.pad_values == PadValues.ONE
    assert_same_values(source, result)


@pytest.mark.usefixtures("library")
@pytest.mark.parametrize("kind", ["dense", "matrix", "transposed matrix"])
def test_dense_layers_after_pooled_and_flattened_levels(kind: str) -> None:
    model = FloatModel()
    flat = model.reshape(model.max_pool(dorefa(model, model.input(2, 4, 6, 32)), 2, 2), 2, 192)
    weights = sign_weights(RNG, 16, 192)
    if kind == "dense":
        output = model.dense(flat, weights, np.arange(16), activation="relu")
    else:
        matrix = model.const(weights if kind.startswith("t") else weights.T)
        output = model.op("BATCH_MATMUL", [flat, matrix], (2, 16), adj_x=False, adj_y=kind.startswith("t"))
    source = model.finish(output)
    result = rewritten(source, binarize_layers, merge_signs, lower_thresholds, remove_dead_ops)
    names = op_names(result)
    assert names[:5] == ["MAX_POOL_2D", "RESHAPE", *PACKING]
    assert names[5:] == ["RESHAPE", "LceBconv2d", "RESHAPE", *["RELU"] * (kind == "dense")]
    assert_same_values(source, result)


@pytest.mark.usefixtures("library")
def test_layers_of_the_same_levels_read_the_same_bits() -> None:
    model = FloatModel()
    pooled = model.max_pool(ternary(model, model.input(1, 8, 8, 32)), 2, 2)
    layers = [model.conv(pooled, sign_weights(RNG, 8, 3, 3, 32), same=True) for _ in range(3)]
    source = model.finish(*layers, model.elementwise("NEG", pooled))
    result = rewritten(source, binarize_layers, merge_signs, lower_thresholds, remove_dead_ops)
    assert op_names(result).count("LceQuantize") == 1
    assert op_names(result).count("MAX_POOL_2D") == 2
    assert op_names(result).count("LceBconv2d") == 3
    assert_same_values(source, result)


@pytest.mark.usefixtures("library")
def test_weights_that_are_computed_from_constants() -> None:
    model = FloatModel()
    kernel = model.sign(model.const(RNG.standard_normal((8, 3, 3, 32))))
    scaled = model.elementwise("MUL", kernel, model.const(2.0 ** RNG.integers(-2, 2, (8, 1, 1, 1))))
    source = model.finish(model.conv(dorefa(model, model.input(1, 5, 6, 32)), scaled))
    assert_same_values(
        source, result := rewritten(source, binarize_layers, merge_signs, lower_thresholds, remove_dead_ops)
    )
    assert op_names(result)[-1] == "LceBconv2d"


@pytest.mark.parametrize(
    ("levels", "change", "reason"),
    [
        (dorefa, lambda w: np.where(np.arange(w.size).reshape(w.shape) == 5, 0, w), "contain zeros"),
        (dorefa, lambda w: np.where(np.arange(w.size).reshape(w.shape) == 5, 0.9 * w, w), "not ±alpha"),
        (dorefa, lambda w: w[..., :32], "it has groups"),
        (lambda m, x: m.elementwise("ADD", booleans(m, x), m.const(1)), lambda w: w, "padded with 0, which is none"),
    ],
)
def test_other_layers_of_levels_stay_float(levels: Any, change: Any, reason: str) -> None:
    model = FloatModel()
    weights = change(sign_weights(RNG, 8, 3, 3, 64)).astype(np.float32)
    built = model.model(model.conv(levels(model, model.input(1, 6, 6, 64)), weights, same=True))
    notes = Notes(built)
    assert not binarize_layers(built.graphs[0], notes)
    assert reason in " ".join(notes.layers[0].reasons)


@pytest.mark.parametrize("rows", [(3,), (-1,), (-1, 3), (-1, -1)])
@pytest.mark.parametrize("kind", ["matrix", "turned input", "batch of matrices", "larger matrix"])
def test_products_of_levels_with_other_than_one_matrix_stay_float(kind: str, rows: tuple[int, ...]) -> None:
    model = FloatModel()
    x = dorefa(model, model.input(*(1 if size < 0 else size for size in rows), 32, signature=(*rows, 32)))
    weights = sign_weights(RNG, 8, 64 if kind.startswith("larger") else 32).T
    weights = np.stack([weights, weights]) if kind.startswith("batch") else weights
    options = {"adj_x": kind.startswith("turned"), "adj_y": False}
    built = model.model(model.op("BATCH_MATMUL", [x, model.const(weights)], (*rows, 8), **options))
    notes = Notes(built)
    binarize_layers(built.graphs[0], notes)
    is_binary = kind == "matrix" and rows != (-1, -1)
    assert ("LceBconv2d" in op_names(built)) == is_binary
    why = "more than one" if kind == "matrix" else "rows of 64" if kind.startswith("larger") else "no product with a"
    assert is_binary or why in " ".join(notes.layers[0].reasons)


def test_a_layer_of_levels_with_a_bias_that_is_computed_stays_float() -> None:
    model = FloatModel()
    output = model.conv(dorefa(model, model.input(1, 6, 6, 32)), sign_weights(RNG, 8, 3, 3, 32), np.zeros(8))
    bias = model.input(8)
    model.graph.set_input(model.graph.ops[-1], 2, bias)
    built = model.model(output)
    notes = Notes(built)
    assert not binarize_layers(built.graphs[0], notes)
    assert list(notes.layers[0].reasons) == [f'its bias "{bias.name}" is not a float constant']


def test_a_quantized_layer_is_left_alone() -> None:
    model = FloatModel()
    x = dorefa(model, model.input(1, 6, 6, 32))
    weights = [model.const(sign_weights(RNG, 8, 3, 3, 32)), model.const(np.zeros(8))]
    output = model.op("CONV_2D", [x, *weights], (1, 4, 4, 8), type="INT8", padding=1, stride_h=1, stride_w=1)
    built = model.model(output)
    assert not binarize_layers(built.graphs[0], Notes(built))


def network(thirds: bool, channels_first: bool, seed: int) -> bytes:
    """Makes three layers whose inputs have 2 bits, with a max pool and batch norms between them."""
    rng = np.random.default_rng(seed)
    model = FloatModel()

    def quantized(x: Tensor) -> Tensor:
        x = model.transpose(x, 0, 3, 1, 2) if channels_first else x
        level = dorefa(model, model.elementwise("MUL", x, model.const(rng.uniform(0.01, 0.05))))
        level = model.elementwise("MUL", level, model.const(1 / 3 if thirds else 0.5))
        return model.transpose(level, 0, 2, 3, 1) if channels_first else level

    x = model.input(1, 8, 8, 3)
    for channels in (32, 40):
        x = model.conv(x, rng.standard_normal((channels, 3, 3, x.channels)), same=True) if x.channels == 3 else x
        x = model.conv(quantized(x), np.float32(0.1) * sign_weights(rng, channels, 3, 3, x.channels), same=True)
        scale, offset = rng.uniform(0.5, 2, channels), rng.standard_normal(channels)
        x = model.elementwise("ADD", model.elementwise("MUL", x, model.const(scale)), model.const(offset))
        x = model.max_pool(x, 2, 2)
    flat = model.reshape(quantized(x), 1, 160)
    return model.finish(model.dense(flat, np.float32(0.3) * sign_weights(rng, 8, 160)))


@pytest.mark.usefixtures("library")
@settings(max_examples=10)
@given(thirds=st.booleans(), channels_first=st.booleans(), seed=st.integers(0, 2**16))
def test_a_converted_network_is_verified_and_compared_layer_by_layer(
    thirds: bool, channels_first: bool, seed: int
) -> None:
    source = network(thirds, channels_first, seed)
    converted, report = litebnn.convert_tflite(source, return_report=True)
    assert [layer.binary for layer in report.layers] == [False, True, True, True]
    assert op_names(converted).count("LceBconv2d") == 3
    layers = LayerComparison("test", source, converted)
    samples = np.random.default_rng(seed).standard_normal((4, 1, 8, 8, 3)).astype(np.float32)
    for sample in samples:
        divergence = layers.first_divergence([sample])
        assert divergence is None or divergence.by_rounding, str(divergence)
    names = {pair.source.tensor.name for pair in layers._pairs if pair.levels}
    assert len(names) == 3


@pytest.mark.usefixtures("library")
def test_levels_of_other_values_are_found_by_comparing() -> None:
    source = network(thirds=False, channels_first=False, seed=1)
    built = read_model(litebnn.convert_tflite(source))
    shifts = [op for op in built.graphs[0].ops if op.name == "ADD" and op.output.name.endswith("part0")]
    assert shifts
    numbers = shifts[0].input(1)
    assert numbers.array is not None
    built.graphs[0].set_input(shifts[0], 1, constant("other", numbers.array + np.float32(0.5)))
    layers = LayerComparison("test", source, write_model(built))
    sample = np.random.default_rng(0).standard_normal((1, 8, 8, 3)).astype(np.float32)
    divergence = layers.first_divergence([sample])
    assert divergence is not None
    assert divergence.flipped > 0
    assert not divergence.by_rounding


@pytest.mark.usefixtures("library")
@pytest.mark.parametrize("name", ["net/levels", "net/levels/Round"])
def test_a_layer_that_is_called_levels_is_compared_as_any(name: str) -> None:
    """If a float layer reads the levels too, the converted model has the levels' tensor under its name in the
    source."""
    model = FloatModel()
    level = dorefa(model, model.input(1, 6, 6, 32))
    level.name = name
    wide = model.conv(level, RNG.standard_normal((8, 3, 3, 32)))
    sign = model.sign(wide)
    sign.name = f"{name}/Sign"
    binary = model.conv(sign, sign_weights(RNG, 8, 3, 3, 8))
    source = model.finish(model.conv(level, sign_weights(RNG, 8, 3, 3, 32)), wide, binary)
    layers = LayerComparison("test", source, litebnn.convert_tflite(source))
    compared = [(pair.source.tensor.name, pair.result.origin.signs, not pair.levels) for pair in layers._pairs]
    assert (name, 0, True) in compared
    assert (name, 96, False) in compared
    assert (f"{name}/Sign", 8, True) in compared
    assert layers.first_divergence([RNG.standard_normal((1, 6, 6, 32)).astype(np.float32)]) is None
