from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import litebnn
from litebnn.flatbuffer import read_model, write_model
from litebnn.report.arrays import write_weights
from tests.support.float_models import FloatModel, any_size_model, op_names, recurrent_model, sign_weights

GOLDEN = Path(__file__).resolve().parents[3] / "tests" / "golden"


def signs(rng: np.random.Generator, *shape: int) -> np.ndarray:
    return sign_weights(rng, *shape, alpha=False)


@settings(max_examples=20)
@given(
    height=st.integers(1, 3),
    width=st.integers(1, 3),
    groups=st.sampled_from([1, 1, 2, 3]),
    channels=st.sampled_from([32, 64, 7, 40]),
    outputs=st.integers(1, 4),
    alpha=st.booleans(),
)
def test_the_weights_are_those_of_the_source(
    height: int, width: int, groups: int, channels: int, outputs: int, alpha: bool
) -> None:
    channels = channels if groups == 1 else -(-channels // 32) * 32
    rng = np.random.default_rng(0)
    weights = sign_weights(rng, groups * outputs, height, width, channels, alpha=alpha)
    model = FloatModel()
    model.conv(x := model.sign(model.input(1, 5, 5, groups * channels)), weights)
    converted = litebnn.convert_tflite(model.finish(model.graph.ops[-1].output))
    assert x.channels == groups * channels
    [(name, found)] = litebnn.binary_weights(converted).items()
    assert name == model.graph.ops[-1].output.name  # of the layer, as the weights are called const_1
    assert found.dtype == np.int8
    np.testing.assert_array_equal(found, np.sign(weights).transpose(1, 2, 3, 0))


def test_the_weights_of_a_dense_layer_and_of_a_model_without_any() -> None:
    rng = np.random.default_rng(0)
    weights = signs(rng, 10, 48)
    model = FloatModel()
    model.dense(model.sign(model.input(1, 48)), weights)
    source = model.finish(model.graph.ops[-1].output)
    [found] = litebnn.binary_weights(litebnn.convert_tflite(source)).values()
    np.testing.assert_array_equal(found, weights.T[None, None])
    assert litebnn.binary_weights(source) == {}


def test_the_weights_of_a_transposed_convolution() -> None:
    """Each tap computes an output position of its own, as stride and filter are both 2."""
    rng = np.random.default_rng(0)
    weights = signs(rng, 8, 2, 2, 32)
    model = FloatModel()
    x = model.transposed_conv(model.sign(model.input(1, 4, 4, 32)), weights, same=False)
    found = litebnn.binary_weights(litebnn.convert_tflite(model.finish(x)))
    taps = np.concatenate([array.reshape(32, -1) for array in found.values()], axis=1)
    assert sorted(map(tuple, taps.T)) == sorted(map(tuple, weights.reshape(-1, 32)))


@pytest.mark.usefixtures("library")
@settings(max_examples=15)
@given(samples=st.integers(1, 3), channels=st.sampled_from([32, 40, 64]), groups=st.sampled_from([1, 2]))
def test_signs_and_weights_give_the_output_of_a_layer(samples: int, channels: int, groups: int) -> None:
    channels = channels if groups == 1 else 64
    rng = np.random.default_rng(0)
    model = FloatModel()
    first = model.conv(model.sign(model.input(1, 6, 6, 32)), signs(rng, channels, 3, 3, 32))
    first = model.elementwise("ADD", first, model.const(rng.integers(-9, 9, channels) + 0.5))
    second = model.conv(model.sign(first), signs(rng, 4, 2, 2, channels // groups))
    converted = litebnn.convert_tflite(model.finish(second))
    x = rng.standard_normal((samples, 6, 6, 32)).astype(np.float32)
    values = litebnn.intermediate_tensors(converted, x)
    weights = list(litebnn.binary_weights(converted).values())[1]
    *_, bits, output = values.values()
    assert bits.shape == (samples, 4, 4, channels)
    assert set(np.unique(bits)) <= {-1, 1}
    windows = np.lib.stride_tricks.sliding_window_view(bits, (2, 2), axis=(1, 2))
    parts = np.split(windows, groups, axis=3), np.split(weights, groups, axis=3)
    expected = [np.einsum("nyxchw,hwco->nyxo", part, kernel) for part, kernel in zip(*parts, strict=True)]
    np.testing.assert_array_equal(output, np.concatenate(expected, axis=-1))
    np.testing.assert_array_equal(output, litebnn.Interpreter(converted).predict(x))


@pytest.mark.usefixtures("library")
def test_tensors_are_chosen_by_name() -> None:
    model = FloatModel()
    x = model.input(1, 4)
    first, second = model.elementwise("NEG", x), model.elementwise("ABS", x)
    first.name, second.name = "net/relu;net/conv/BiasAdd", "net/other"
    source = model.finish(first, second)
    samples = {x.name: np.arange(8, dtype=np.float32).reshape(2, 4)}
    for name in ("net/conv/BiasAdd", "net/relu;net/conv/BiasAdd"):
        found = litebnn.intermediate_tensors(source, samples, [name])
        assert list(found) == [name]
        np.testing.assert_array_equal(found[name], -samples[x.name])
    with pytest.raises(
        litebnn.ConversionError, match='no op computes a tensor "net/othr": expected one like net/other'
    ):
        litebnn.intermediate_tensors(source, samples, ["net/othr"])
    with pytest.raises(ValueError, match="has shape"):
        litebnn.intermediate_tensors(source, np.zeros((2, 5), np.float32))


@pytest.mark.usefixtures("library")
@pytest.mark.parametrize(
    ("source", "x"),
    [
        (any_size_model(), np.random.default_rng(0).standard_normal((2, 9, 14, 3))),
        (recurrent_model(), np.random.default_rng(0).standard_normal((4, 3, 32))),
        ((GOLDEN / "residual.float.tflite").read_bytes(), np.load(GOLDEN / "residual.npz")["input"]),
    ],
    ids=["any size", "state", "golden"],
)
def test_showing_the_tensors_changes_none(source: bytes, x: Any) -> None:
    converted = litebnn.convert_tflite(source)
    values = litebnn.intermediate_tensors(converted, x.astype(np.float32))
    assert len(values) == len(op_names(converted))
    output = read_model(converted).graphs[0].outputs[0].name
    np.testing.assert_array_equal(values[output], litebnn.Interpreter(converted).predict(x.astype(np.float32)))


def test_weights_are_written_under_any_name(tmp_path: Path) -> None:
    weights = {name: np.ones((1, 1, 2, 3), np.int8) for name in ("file", "a/b", "../é;", "")}
    write_weights(tmp_path / "out.npz", weights)
    with np.load(tmp_path / "out.npz") as read:
        assert sorted(read.files) == sorted(weights)
        assert all(np.array_equal(read[name], weights[name]) for name in weights)


def test_damaged_layers_are_refused() -> None:
    model = read_model((GOLDEN / "1x1.lce.tflite").read_bytes())
    layer = next(op for op in model.ops() if op.name == "LceBconv2d")
    layer.input(1).buffer.data = None
    with pytest.raises(litebnn.ConversionError, match="is not constant"):
        litebnn.binary_weights(write_model(model))
