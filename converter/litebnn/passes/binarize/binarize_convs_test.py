from typing import Any

import numpy as np
import pytest

import litebnn
from litebnn.contract import Padding, PadValues, unpack_bits
from litebnn.flatbuffer import read_model
from litebnn.passes.binarize.binarize_convs import binarize_convs
from litebnn.passes.find_signs.recognize_signs import recognize_signs
from litebnn.passes.tidy.remove_dead_ops import remove_dead_ops
from litebnn.rewriting.bconv import bconv_options
from litebnn.rewriting.notes import Notes
from tests.support.float_models import FloatModel, assert_same_values, op_names, rewritten, sign_weights
from tests.support.quantized_models import EXACT_GRID, Int8Model

RNG = np.random.default_rng(0)


def converted(model: FloatModel, output: Any) -> tuple[Any, Notes]:
    built = model.model(output)
    notes = Notes(built)
    recognize_signs(built.graphs[0], notes)
    binarize_convs(built.graphs[0], notes)
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
    """The padding matters if the model is resized."""
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
    binarize_convs(built.graphs[0], notes)
    assert [layer.binary for layer in notes.layers] == [True, True, True]


def test_a_depthwise_convolution_says_why_not() -> None:
    from pathlib import Path

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
    result = rewritten(source, recognize_signs, binarize_convs, remove_dead_ops)
    assert op_names(result)[-2:] == ["LceQuantize", "LceBconv2d"]
    options = bconv_options(result.graphs[0].ops[-1])
    assert (options.explicit_padding, options.pad_values) == (explicit, PadValues.ZERO)
    assert explicit is not None or options.padding == Padding.SAME
    assert_same_values(source, result)


def test_padding_that_is_no_sign_is_a_reason() -> None:
    built = read_model(padded_conv(0.5, [(1, 1), (1, 1)]))
    notes = Notes(built)
    recognize_signs(built.graphs[0], notes)
    assert not binarize_convs(built.graphs[0], notes)
    assert "padded with 0.5, which is neither 0 nor ±1" in " ".join(notes.layers[0].reasons)
