"""Tests the option `assume_nonzero`: weights that are exactly 0."""

from collections.abc import Callable

import numpy as np
import pytest

import litebnn
from litebnn.graph import Array, Tensor
from litebnn.rules.build.int8 import int8_constant
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
    assert str(report).startswith("assume_nonzero would make 1 more of 1 layers binary\n")


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


def network() -> bytes:
    """Layers that read, in this order: where(x >= 0, 1, -1), sign(x), sign(x) with a weight of 0, and no sign."""
    rng = np.random.default_rng(0)
    weights = [sign_weights(rng, 32, 3, 3, 32) for _ in range(4)]
    weights[2][0, 0, 0, 0] = 0
    model = FloatModel()
    offsets = rng.uniform(0.1, 0.9, 32)  # without them, sums of signs would often be 0
    x = model.conv(image(model), weights[0], offsets)
    x = model.conv(model.elementwise("SIGN", x), weights[1], offsets, same=True)
    x = model.conv(model.elementwise("SIGN", x), weights[2], same=True)
    return model.finish(model.conv(x, weights[3], same=True))


def test_the_report_begins_with_the_layers_that_the_option_makes_binary() -> None:
    binary = [True, False, False, False]
    for assume_nonzero, verb in ((False, "would make 2 more"), (True, "makes 2")):
        _, report = litebnn.convert_tflite(network(), assume_nonzero=assume_nonzero, verify=False, return_report=True)
        assert [layer.binary for layer in report.layers] == binary
        assert str(report).splitlines()[0] == f"assume_nonzero {verb} of 4 layers binary"
        assert report.to_dict()["assume_nonzero"] == {"is_given": assume_nonzero, "layers": 2}
        binary[1:3] = [True, True]
    model = FloatModel()
    source = model.finish(model.conv(image(model), sign_weights(np.random.default_rng(0), 8, 3, 3, 32)))
    _, report = litebnn.convert_tflite(source, return_report=True)
    assert report.headlines() == []
    _, report = litebnn.convert_tflite(source, assume_nonzero=True, verify=False, return_report=True)
    assert report.headlines() == ["assume_nonzero makes 0 of 1 layers binary"]
