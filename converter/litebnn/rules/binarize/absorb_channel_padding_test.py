import numpy as np
import pytest

import litebnn
from litebnn.flatbuffer import read_model
from litebnn.graph import Tensor
from litebnn.rules.binarize.absorb_channel_padding import absorb_channel_padding
from litebnn.rules.thresholds.recognize_signs import recognize_signs
from tests.support.float_models import FloatModel, assert_same_values, op_names, rewritten, sign_weights

RNG = np.random.default_rng(0)


def with_channels(model: FloatModel, x: Tensor, before: int, after: int, ring: int = 0) -> Tensor:
    middle = [(ring, ring)] * (len(x.dims) - 2)
    amounts = [(0, 0), *middle, (before, after)]
    shape = [size + sum(own) for size, own in zip(x.dims, amounts, strict=True)]
    return model.op("PAD", [x, model.const(amounts, np.int32)], shape)


@pytest.mark.parametrize("same", [False, True])
def test_a_convolution_reads_signs_without_the_zeros_beside_them(same: bool) -> None:
    model = FloatModel()
    x = with_channels(model, model.sign(model.input(1, 6, 6, 24)), 3, 5)
    source = model.finish(model.conv(x, sign_weights(RNG, 8, 3, 3, 32), np.arange(8), same=same))
    converted, report = litebnn.convert_tflite(source, return_report=True)
    assert report.layers[0].binary
    assert "PAD" not in op_names(converted)
    assert_same_values(source, read_model(converted))


@pytest.mark.parametrize(("before", "after"), [(4, 10), (0, 14)])
def test_a_dense_layer_of_padded_features(before: int, after: int) -> None:
    model = FloatModel()
    x = with_channels(model, model.sign(model.input(2, 50)), before, after)
    source = model.finish(model.dense(x, sign_weights(RNG, 8, 64)))
    converted, report = litebnn.convert_tflite(source, return_report=True)
    assert report.layers[0].binary
    assert_same_values(source, read_model(converted))


@pytest.mark.parametrize("kind", ["groups", "numbers", "ring"])
def test_other_padding_stays(kind: str) -> None:
    model = FloatModel()
    x = model.input(1, 6, 6, 24)
    x = with_channels(model, x if kind == "numbers" else model.sign(x), 3, 5, ring=int(kind == "ring"))
    source = model.finish(model.conv(x, sign_weights(RNG, 8, 3, 3, 16 if kind == "groups" else 32)))
    assert "PAD" in op_names(rewritten(source, recognize_signs, absorb_channel_padding))
