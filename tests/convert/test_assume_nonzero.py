"""Tests the option `assume_nonzero`: weights that are exactly 0."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import litebnn
from litebnn.build.int8 import int8_constant
from litebnn.graph import Array, Tensor
from tests.support.float_models import FloatModel, sign_weights
from tests.support.level_spellings import LEVELS

Build = Callable[[FloatModel, Array], Tensor]


def image(model: FloatModel) -> Tensor:
    return model.sign(model.input(1, 6, 6, 32))


def kernel_of(model: FloatModel, weights: Array, scale: float = 1.0) -> Tensor:
    """Adds ops that compute a kernel of ±`scale` as the sign of a constant."""
    latent = model.const(np.float32(0.3) * weights)
    return model.elementwise("MUL", model.elementwise("SIGN", latent), model.const(scale))


def in_halves(model: FloatModel, weights: Array) -> Tensor:
    halves = model.const(weights, np.float16)
    return model.op("DEQUANTIZE", [halves], weights.shape)


def in_bytes(model: FloatModel, weights: Array) -> Tensor:
    return int8_constant("kernel", weights, np.abs(weights).max(axis=(1, 2, 3)) / 127)


LAYERS: dict[str, tuple[tuple[int, ...], Build]] = {
    "conv": ((8, 3, 3, 32), lambda m, w: m.conv(image(m), w, same=True)),
    "grouped conv": ((8, 3, 3, 32), lambda m, w: m.conv(m.sign(m.input(1, 6, 6, 64)), w)),
    "dense": ((8, 32), lambda m, w: m.dense(m.sign(m.input(1, 32)), w)),
    "matmul": ((8, 32), lambda m, w: m.op("BATCH_MATMUL", [m.sign(m.input(1, 32)), m.const(w.T)], (1, 8))),
    "transposed conv": ((8, 2, 2, 32), lambda m, w: m.transposed_conv(image(m), w)),
    "several transposed phases": ((8, 3, 3, 32), lambda m, w: m.transposed_conv(image(m), w)),
    "zeros and ones": ((8, 3, 3, 32), lambda m, w: m.conv(m.two_values(m.input(1, 6, 6, 32)), w)),
    "levels": ((8, 3, 3, 32), lambda m, w: m.conv(LEVELS["dorefa"](m, m.input(1, 6, 6, 32)), w)),
    "computed": ((8, 3, 3, 32), lambda m, w: m.conv(image(m), kernel_of(m, w, 0.25))),
    "halves": ((8, 3, 3, 32), lambda m, w: m.conv(image(m), in_halves(m, w))),
    "bytes": ((8, 3, 3, 32), lambda m, w: m.conv(image(m), in_bytes(m, w))),
}


def source_of(layer: str, value: float) -> tuple[bytes, Array]:
    """A model of one layer, and the layer's weights. Two weights of a channel are `value` times the channel's alpha."""
    shape, build = LAYERS[layer]
    weights = sign_weights(np.random.default_rng(0), *shape)
    weights[3].reshape(-1)[[5, 7]] = value * np.abs(weights[3]).max()
    model = FloatModel()
    return model.finish(build(model, weights)), weights


@pytest.mark.parametrize("layer", LAYERS)
def test_a_layer_with_few_zero_weights_is_that_with_plus_alpha(layer: str) -> None:
    (source, weights), (assumed, _) = source_of(layer, 0), source_of(layer, 1)
    converted, report = litebnn.convert_tflite(source, assume_nonzero=True, return_report=True)
    assert converted == litebnn.convert_tflite(assumed)
    [found] = report.layers
    assert (found.binary, found.zero_weights) == (True, 2)
    assert report.noted == (f"{found.name}: 2 of its {weights.size:,} weights are 0, taken for +1 (assume_nonzero)",)


@pytest.mark.parametrize("layer", LAYERS)
def test_without_the_option_the_reason_counts_the_zeros(layer: str) -> None:
    source, weights = source_of(layer, 0)
    with pytest.warns(UserWarning, match="no binary layer"):
        _, report = litebnn.convert_tflite(source, return_report=True)
    reason = f"2 of its {weights.size:,} weights are 0; with assume_nonzero they count as +1"
    assert list(report.layers[0].reasons) == [reason]
    assert report.layers[0].zero_weights == 0


def test_a_ternary_layer_stays_what_it_is() -> None:
    weights = sign_weights(np.random.default_rng(0), 8, 3, 3, 32)
    weights[np.random.default_rng(1).random(weights.shape) < 0.3] = 0
    model = FloatModel()
    with pytest.warns(UserWarning, match="no binary layer"):
        _, report = litebnn.convert_tflite(
            model.finish(model.conv(image(model), weights)), assume_nonzero=True, return_report=True
        )
    [reason] = report.layers[0].reasons
    assert reason.endswith("weights are 0 (ternary or pruned)")
