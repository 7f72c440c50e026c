"""Tests networks of several layers: weights that larq saved, and the summary."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.needs import imported

tf = imported("tensorflow", "keras")
keras = imported("keras", "keras")
lq = imported("litebnn.keras", "keras")

SIGNS = {"input_quantizer": "ste_sign", "kernel_quantizer": "ste_sign", "kernel_constraint": "weight_clip"}
DEPTHWISE = {"depthwise_quantizer": "ste_sign", "depthwise_constraint": "weight_clip"}
SEPARABLE = {**DEPTHWISE, "pointwise_quantizer": "ste_tern"}


def network(bnn: Any, keras: Any) -> Any:
    """A network with each kind of layer and a nested model, built with larq and Keras 2 or with litebnn and Keras 3."""
    layers = keras.layers
    inputs = layers.Input((9, 9, 8))
    with bnn.context.metrics_scope(["flip_ratio"]):
        x = bnn.layers.QuantConv2D(16, 3, padding="same", pad_values=1.0, name="z", **SIGNS)(inputs)
    x = layers.BatchNormalization(name="a")(x)
    y = bnn.layers.QuantSeparableConv2D(16, 3, padding="same", **SEPARABLE)(x)
    y = layers.BatchNormalization(scale=False)(y)
    x = layers.add([x, y])
    x = bnn.layers.QuantDepthwiseConv2D(3, strides=2, **DEPTHWISE)(x)
    inner = keras.Sequential([bnn.layers.QuantConv2D(16, 1, groups=2, **SIGNS), layers.BatchNormalization()])
    x = layers.MaxPool2D(2)(inner(x))
    return keras.Model(inputs, bnn.layers.QuantDense(4, **SIGNS)(layers.Flatten()(x)))


@pytest.fixture(scope="module")
def larq_network() -> Any:
    larq = imported("larq", "larq")
    model = network(larq, tf.keras)
    rng = np.random.default_rng(0)
    model.set_weights(
        [np.abs(rng.normal(size=weight.shape)).astype(np.float32) - 0.1 for weight in model.get_weights()]
    )
    return model


@pytest.mark.filterwarnings("ignore")  # of file formats that are old
@pytest.mark.parametrize("name", ["network.h5", "network.keras", "weights.h5", "network.weights.h5"])
def test_weights_that_larq_saved_are_loaded(larq_network: Any, tmp_path: Path, name: str) -> None:
    (larq_network.save_weights if "weights" in name else larq_network.save)(tmp_path / name)
    model = network(lq, keras)
    x = np.random.default_rng(1).normal(size=(3, 9, 9, 8)).astype(np.float32)
    expected = larq_network(x).numpy()
    assert np.abs(np.asarray(model(x)) - expected).max() > 1
    model.load_weights(tmp_path / name)
    np.testing.assert_allclose(model(x), expected, rtol=1e-6, atol=1e-6)


def test_the_summary_counts_as_larq_does(larq_network: Any) -> None:
    from larq.models import ModelProfile

    theirs = ModelProfile(larq_network)
    ours = [weight for layer in lq.models.profile(network(lq, keras)) for weight in layer.weights]
    for bits in (1, 2, 32):
        assert sum(w.count for w in ours if w.bits == bits) == theirs.weight_count(bits)
        assert sum(w.macs for w in ours if w.mac_bits == bits) == theirs.op_count("mac", bits)
    for trainable in (True, False):
        assert sum(w.count for w in ours if w.trainable == trainable) == theirs.weight_count(trainable=trainable)
    assert sum(w.count * w.bits for w in ours) == theirs.memory


def test_the_summary_is_two_tables() -> None:
    model = keras.Sequential(
        [
            keras.Input((8, 8, 32)),
            lq.layers.QuantConv2D(64, 3, name="first", **SIGNS),
            lq.layers.QuantConv2DTranspose(32, 2, strides=2, name="second", **SIGNS),
            keras.layers.Dense(10, name="third"),
        ],
        name="example",
    )
    printed: list[str] = []
    lq.models.summary(model, print_fn=printed.append)
    stats, sums = (text.replace("│", "|").splitlines() for text in printed)
    assert stats[0] == "example stats"
    assert sums[0] == "example summary"
    rows = {
        line.split("|")[1].strip(): [part.strip() for part in line.split("|")[2:-1]] for line in stats if "|" in line
    }
    assert rows["first"] == ["1", "(-1, 6, 6, 64)", "18,432", "64", "2.50", "663,552", "0"]
    assert rows["second"] == ["1", "(-1, 12, 12, 32)", "8,192", "32", "1.12", "294,912", "0"]
    assert rows["third"] == ["-", "(-1, 12, 12, 10)", "0", "330", "1.29", "0", "46,080"]
    assert rows["Total"] == ["", "", "26,624", "426", "4.91", "958,464", "46,080"]
    totals = {line.split("|")[1].strip(): line.split("|")[2].strip() for line in sums if "|" in line}
    assert totals["Total params"] == "27,050"
    assert totals["Model size"] == "4.91 KiB"
    assert totals["Ratio of MACs that are binarized"] == "0.9541"

    lq.models.summary(model, print_fn=printed.append, include_macs=False)
    assert "MACs" in printed[0]
    assert "MACs" not in printed[2] + printed[3]


def test_sizes_that_are_unknown_are_question_marks() -> None:
    model = keras.Sequential([keras.Input((None, None, 32)), lq.layers.QuantConv2D(64, 3, **SIGNS)])
    printed: list[str] = []
    lq.models.summary(model, print_fn=printed.append)
    assert "?" in printed[0]
    with pytest.raises(ValueError, match='"unbuilt" is not built yet'):
        lq.models.summary(keras.Sequential([keras.layers.Dense(3)], name="unbuilt"))
