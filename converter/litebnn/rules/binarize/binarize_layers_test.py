from pathlib import Path
from typing import Any

import numpy as np
import pytest

import litebnn
from litebnn.contract import Padding, PadValues, unpack_bits
from litebnn.flatbuffer import read_model
from litebnn.rules.binarize.binarize_layers import binarize_layers
from litebnn.rules.build.bconv import bconv_options
from litebnn.rules.build.notes import Notes
from litebnn.rules.canonical.remove_dead_ops import remove_dead_ops
from litebnn.rules.thresholds.recognize_signs import recognize_signs
from tests.support.float_models import FloatModel, assert_same_values, binarized, op_names, rewritten, sign_weights
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
    """SAME padding adds no pixels to the 8×8 image, but it would add pixels after the model's input is resized to an
    odd size."""
    model = FloatModel()
    x = model.sign(model.input(1, 8, 8, 32, signature=(1, size, size, 32)))
    op, _ = converted(model, model.conv(x, sign_weights(RNG, 8, 2, 2, 32), same=True, stride=(2, 2)))
    assert bconv_options(op).padding == Padding.SAME


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda w: np.where(np.arange(w.size).reshape(w.shape) == 5, 0, w), "weights is 0; with assume_nonzero"),
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
        (
            np.where(np.arange(1000).reshape(10, 100) == 7, 0, sign_weights(RNG, 10, 100)),
            "weights is 0; with assume_nonzero",
        ),
        (RNG.standard_normal((10, 100)), "not ±alpha"),
        (sign_weights(RNG, 10, 50), "rows of 50"),
    ],
)
def test_other_dense_layers_stay_float(weights: np.ndarray, reason: str) -> None:  # type: ignore[type-arg]
    model = FloatModel()
    built, notes = binarized(model, model.dense(model.sign(model.input(2, 100)), weights))
    assert "FULLY_CONNECTED" in op_names(built)
    assert reason in " ".join(notes.layers[0].reasons)


@pytest.mark.parametrize("batch", [2, -1])
def test_each_row_of_a_layer_that_keeps_its_axes_is_a_pixel(batch: int) -> None:
    model = FloatModel()
    x = model.sign(model.input(2, 5, 32, signature=(batch, 5, 32)))
    weights = model.const(sign_weights(np.random.default_rng(0), 8, 32))
    built, _ = binarized(model, model.op("FULLY_CONNECTED", [x, weights, None], (batch, 5, 8), keep_num_dims=True))
    [layer] = [op for op in built.ops() if op.name == "LceBconv2d"]
    rows = 10 if batch == 2 else -1
    assert (layer.input(0).dims, layer.output.dims) == ((rows, 1, 1, 1), (rows, 1, 1, 8))
    assert built.graphs[0].outputs[0].dims == (batch, 5, 8)


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
    built, notes = binarized(model, model.op("BATCH_MATMUL", [model.sign(model.input(1, 64)), kernel], (1, 10)))
    assert op_names(built) == ["LceQuantize", "RESHAPE", "LceBconv2d", "RESHAPE"]
    assert notes.layers[0].binary
    assert notes.layers[0].macs == 640


_WHY_NOT = ("both inputs are computed", "not ±alpha", "not the output", "more than one dimension")


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
