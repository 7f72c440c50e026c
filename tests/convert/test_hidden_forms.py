"""Tests binary layers that exporters write in forms that are hard to recognize. Source and result must agree bit for
bit."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import litebnn
from litebnn.flatbuffer import read_model
from litebnn.graph import Array, Tensor
from litebnn.rules.build.bconv import bconv_options
from tests.support.float_models import FloatModel, dyadic, op_names, sign_weights

BATCHES = pytest.mark.parametrize("batch", [1, 4, -1])
BINARY_OPS = {"LceQuantize", "LceBconv2d", "LceBMaxPool2d", "RESHAPE", "EXPAND_DIMS", "SQUEEZE"}


def weights(*shape: int) -> Array:
    return sign_weights(np.random.default_rng(sum(shape)), *shape)


def make_input(model: FloatModel, batch: int, *shape: int) -> Tensor:
    return model.input(max(batch, 1), *shape, signature=(batch, *shape) if batch < 0 else None)


def run(model: bytes, x: Array) -> list[Array]:
    result = litebnn.Interpreter(model).predict(x)
    return result if isinstance(result, list) else [result]


def convert_exactly(source: bytes, **options: Any) -> tuple[list[str], litebnn.ConversionReport]:
    """Converts a model, and checks that the result computes the same bits as the source. Returns the ops of the result
    and the report."""
    converted, report = litebnn.convert_tflite(source, return_report=True, **options)
    tensor = read_model(source).graphs[0].inputs[0]
    samples = tensor.shape[0] if tensor.shape_signature is None else 3
    x = dyadic(np.random.default_rng(len(source)), samples, *tensor.shape[1:], largest=16)
    for expected, actual in zip(run(source, x), run(converted, x), strict=True):
        np.testing.assert_array_equal(actual, expected)
    return op_names(converted), report


def all_binary(source: bytes, **options: Any) -> list[str]:
    """Converts a model, checks that all its layers become binary, and returns the ops of the result."""
    names, report = convert_exactly(source, **options)
    assert [layer.binary for layer in report.layers] == [True] * len(report.layers), str(report)
    return names


@BATCHES
@pytest.mark.parametrize("comparison", ["GREATER_EQUAL", "GREATER", "LESS"])
@pytest.mark.parametrize("activation", ["none", "relu"])
def test_a_convolution_of_0_and_1(batch: int, comparison: str, activation: str) -> None:
    model = FloatModel()
    x = model.two_values(make_input(model, batch, 6, 6, 40), comparison=comparison)
    y = model.conv(x, weights(8, 3, 3, 40), dyadic(np.random.default_rng(0), 8), activation=activation)
    names = all_binary(model.finish(y))
    assert names.count("LceBconv2d") == 1
    assert "CAST" not in names


@BATCHES
@pytest.mark.parametrize(("false", "true"), [(0, 1), (1, 0), (-0.5, 0.5), (3, -1), (0, 0.25)])
def test_a_dense_layer_of_any_two_values(batch: int, false: float, true: float) -> None:
    model = FloatModel()
    x = model.two_values(make_input(model, batch, 64), false, true)
    assert "FULLY_CONNECTED" not in all_binary(model.finish(model.dense(x, weights(8, 64), np.arange(8))))


@BATCHES
def test_0_and_1_padded_with_zeros_is_a_sign_padded_with_one_value(batch: int) -> None:
    model = FloatModel()
    x = model.two_values(make_input(model, batch, 6, 6, 40))
    y = model.conv(x, weights(8, 3, 3, 40), same=True)
    assert set(all_binary(model.finish(y))) <= {"SUB", *BINARY_OPS}


@BATCHES
def test_0_and_1_on_their_way_to_a_layer(batch: int) -> None:
    model = FloatModel()
    x = model.two_values(make_input(model, batch, 6, 6, 32))
    x = model.reshape(model.max_pool(x, 2, 2), batch, 288)
    assert "LceBMaxPool2d" in all_binary(model.finish(model.dense(x, weights(8, 288))))


def test_0_and_1_that_others_read_too_stay_as_they_are() -> None:
    model = FloatModel()
    x = model.two_values(model.input(1, 6, 6, 32))
    gated = model.elementwise("MUL", x, model.const(np.arange(32)))
    all_binary(model.finish(model.conv(x, weights(8, 3, 3, 32)), gated, model.conv(x, weights(4, 1, 1, 32))))


@BATCHES
@pytest.mark.parametrize("condition", [(1, 1, 32), (6, 6, 1), (1, 6, 32), (1, 1, 1)])
def test_where_with_a_condition_that_is_broadcast(batch: int, condition: tuple[int, ...]) -> None:
    model = FloatModel()
    x = make_input(model, batch, *condition)
    positive = model.elementwise("GREATER_EQUAL", x, model.const(0.25), type="BOOL")
    minus = model.const(-np.ones((1, 6, 6, 32)))
    signs = model.op("SELECT_V2", [positive, model.const(1), minus], (batch, 6, 6, 32))
    all_binary(model.finish(model.conv(signs, weights(8, 3, 3, 32))))


@BATCHES
@pytest.mark.parametrize("mirrored", [False, True])
@pytest.mark.parametrize("pool", [False, True])
def test_a_threshold_for_each_channel_is_one_of_the_layer_before(batch: int, mirrored: bool, pool: bool) -> None:
    model = FloatModel()
    x = model.conv(model.sign(make_input(model, batch, 8, 8, 32)), weights(32, 3, 3, 32))
    if pool:
        x = model.max_pool(x, 2, 2)
    level = model.const(np.arange(32) / 4 - 4)
    condition = model.elementwise(*(("LESS_EQUAL", level, x) if mirrored else ("GREATER_EQUAL", x, level)), type="BOOL")
    signs = model.op("SELECT_V2", [condition, model.const(1), model.const(-1)], x.dims)
    names = all_binary(model.finish(model.conv(signs, weights(8, 3, 3, 32))))
    assert set(names) <= BINARY_OPS


@BATCHES
@pytest.mark.parametrize("value", [None, 1.0, -1.0])
@pytest.mark.parametrize("expand", [1, 2])
def test_a_causal_conv1d(batch: int, value: float | None, expand: int) -> None:
    model = FloatModel()
    x = model.pad(model.sign(make_input(model, batch, 10, 32)), [(2, 0)], value)
    y = model.conv(model.expand(x, expand), weights(8, *((1, 3) if expand == 1 else (3, 1)), 32))
    names = all_binary(model.finish(model.reshape(y, batch, 10, 8)))
    assert value == -1.0 or set(names) <= BINARY_OPS


@BATCHES
@pytest.mark.parametrize("pads", [(0, 0), (2, 2), (1, 3)])
def test_a_dilated_conv1d_by_space_to_batch(batch: int, pads: tuple[int, int]) -> None:
    model = FloatModel()
    x = model.pad(model.sign(make_input(model, batch, 10, 32)), [(4, 0)])
    x = model.space_to_batch(x, [2], [pads])
    y = model.conv(model.expand(x, 1), weights(8, 1, 3, 32))
    y = model.reshape(y, y.dims[0], y.dims[2], 8)
    names = all_binary(model.finish(model.batch_to_space(y, [2], [(0, 0)])))
    assert set(names) <= BINARY_OPS


@BATCHES
@pytest.mark.parametrize("crops", [[(0, 0), (0, 0)], [(1, 0), (0, 1)], [(2, 1), (1, 2)], [(0, 2), (3, 0)]])
def test_space_to_batch_with_crops(batch: int, crops: list[tuple[int, int]]) -> None:
    model = FloatModel()
    x = model.sign(make_input(model, batch, 8, 10, 32))
    y = model.conv(model.space_to_batch(x, [2, 2], [(2, 2), (3, 1)]), weights(8, 3, 3, 32))
    all_binary(model.finish(model.batch_to_space(y, [2, 2], crops)))


PYTORCH = [
    ((8, 8), (3, 3), 2, (1, 1)),
    ((8, 6), (7, 7), 2, (3, 3)),
    ((7, 8), (3, 2), 3, (2, 1)),
    ((5, 5), (1, 1), 2, (1, 1)),
]


@BATCHES
@pytest.mark.parametrize("value", [None, 0.0, 1.0, -1.0])
@pytest.mark.parametrize("channels", [32, 40])
@pytest.mark.parametrize(("sizes", "taps", "stride", "padding"), PYTORCH)
def test_padding_as_pytorch_does_it(
    batch: int, value: float | None, channels: int, sizes: Any, taps: Any, stride: int, padding: tuple[int, int]
) -> None:
    model = FloatModel()
    x = model.sign(make_input(model, batch, *sizes, channels))
    x = model.pad(x, [(padding[0], padding[0]), (padding[1], padding[1])], value)
    y = model.conv(x, weights(32, *taps, channels), stride=(stride, stride), activation="relu")
    z = model.conv(model.sign(model.elementwise("SUB", y, model.const(2.0))), weights(8, 1, 1, 32))
    names = all_binary(model.finish(z))
    assert value == -1.0 or set(names) <= BINARY_OPS


def test_padding_of_an_image_whose_size_is_not_known() -> None:
    model = FloatModel()
    x = model.input(1, 8, 8, 32, signature=(-1, -1, -1, 32))
    y = model.conv(model.pad(model.sign(x), [(1, 1), (1, 1)]), weights(8, 3, 3, 32), stride=(2, 2))
    assert all_binary(model.finish(y)) == ["LceQuantize", "LceBconv2d"]


@BATCHES
def test_padding_with_nothing_is_removed(batch: int) -> None:
    model = FloatModel()
    x = model.pad(make_input(model, batch, 8, 8, 32), [(0, 0), (0, 0)])
    x = model.pad(model.sign(x), [(0, 0), (0, 0)], 0.5)
    y = model.conv(x, weights(8, 3, 3, 32), stride=(2, 2))
    assert all_binary(model.finish(y)) == ["LceQuantize", "LceBconv2d"]


CONSTANT_FORMS: dict[str, Callable[[FloatModel, Array], Tensor]] = {
    "clipped": lambda m, w: m.sign(m.elementwise("RELU_N1_TO_1", m.const(w))),
    "squeezed": lambda m, w: m.op("SQUEEZE", [m.sign(m.const(w[None]))], w.shape),
    "minimum": lambda m, w: m.sign(m.elementwise("MINIMUM", m.const(w), m.const(1))),
    "tanh": lambda m, w: m.sign(m.elementwise("TANH", m.const(w))),
    "sum": lambda m, w: m.elementwise("MUL", m.sign(m.const(w)), total(m, m.elementwise("ABS", m.const(w)))),
    "activation": lambda m, w: m.sign(m.elementwise("MUL", m.const(w), m.const(2), activation="relu1")),
    "concatenation": lambda m, w: joined(m, m.sign(m.const(w[:3])), m.sign(m.const(w[3:]))),
}


def total(model: FloatModel, x: Tensor) -> Tensor:
    return model.op("SUM", [x, model.const([1, 2, 3], np.int32)], (x.dims[0], 1, 1, 1), keep_dims=True)


def joined(model: FloatModel, *parts: Tensor) -> Tensor:
    return model.op("CONCATENATION", parts, (sum(p.dims[0] for p in parts), *parts[0].dims[1:]), axis=0)


@pytest.mark.parametrize("form", CONSTANT_FORMS)
def test_weights_that_are_computed_from_constants(form: str) -> None:
    model = FloatModel()
    kernel = CONSTANT_FORMS[form](model, dyadic(np.random.default_rng(1), 8, 3, 3, 32))
    y = model.conv(model.sign(model.input(1, 6, 6, 32)), kernel)
    assert all_binary(model.finish(y)) == ["LceQuantize", "LceBconv2d"]


def test_a_scale_that_is_computed_from_constants_is_fused() -> None:
    model = FloatModel()
    y = model.conv(model.sign(model.input(1, 6, 6, 32)), weights(8, 3, 3, 32))
    scale = model.elementwise("ABS", model.elementwise("NEG", model.const(2.0 ** np.arange(8))))
    assert all_binary(model.finish(model.elementwise("MUL", y, scale))) == ["LceQuantize", "LceBconv2d"]


@pytest.mark.parametrize(
    ("form", "reason"),
    [
        ("padded_batch", "the batch or the channels of its input are padded"),
        ("half", "is padded with 0.5"),
        ("computed_padding", "the padding of its input is computed when the model runs"),
        ("ternary", "use ste_sign"),
        ("after_elu", "ELU"),
    ],
)
def test_the_reason_of_a_layer_that_stays_float_is_true(form: str, reason: str) -> None:
    model = FloatModel()
    raw = model.input(1, 6, 6, 32)
    x = model.sign(raw)
    if form == "padded_batch":
        amounts = model.const([(1, 1), (0, 0), (0, 0), (0, 0)], np.int32)
        x = model.op("PAD", [x, amounts], (3, 6, 6, 32))
    elif form == "half":
        x = model.pad(x, [(1, 1), (1, 1)], 0.5)
    elif form == "computed_padding":
        amounts = model.input(4, 2, type="INT32")
        x = model.op("PAD", [x, amounts], (1, 8, 8, 32))
    elif form == "ternary":
        x = model.elementwise("SIGN", raw)
    else:
        x = model.elementwise("ELU", x)
    source = model.finish(model.conv(x, weights(8, 3, 3, x.dims[-1])))
    with pytest.warns(UserWarning, match="no binary layer"):
        _, report = litebnn.convert_tflite(source, return_report=True)
    assert reason in "; ".join(report.layers[0].reasons)
    assert len(report.layers[0].reasons) == 1


@BATCHES
@pytest.mark.parametrize("value", [None, 1.0])
@pytest.mark.parametrize("activation", ["none", "relu"])
def test_a_file_for_larqs_runtime_holds_nothing_that_it_refuses(
    batch: int, value: float | None, activation: str
) -> None:
    model = FloatModel()
    x = model.pad(model.sign(make_input(model, batch, 8, 8, 32)), [(1, 1), (1, 1)], value)
    x = model.conv(x, weights(32, 3, 3, 32), stride=(2, 2), activation=activation)
    x = model.elementwise("SUB", x, model.const(np.arange(32) / 4))
    x = model.conv(model.sign(x), weights(32, 3, 3, 32), same=True, activation="relu6")
    source = model.finish(model.conv(model.sign(x), weights(8, 1, 1, 32)))
    names = all_binary(source, larq_compatible=True)
    assert "ADD" in names or value == 1.0
    converted = read_model(litebnn.convert_tflite(source, larq_compatible=True))
    for op in converted.graphs[0].ops:
        if op.name == "LceBconv2d":
            options = bconv_options(op)
            assert options.padding is not None
            assert not options.pads_zeros or (op.output.type, options.fused_activation_function) == ("FLOAT32", 0)
