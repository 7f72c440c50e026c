import numpy as np
import pytest

import litebnn
from litebnn.flatbuffer import read_model
from litebnn.rules.thresholds.recognize_signs import recognize_signs
from litebnn.rules.thresholds.work_on_bits import work_on_bits
from tests.support.float_models import FloatModel, assert_same_values, op_names, rewritten, sign_weights


def pooled_sign(activation: str = "none", *, sign: bool = True) -> bytes:
    model = FloatModel()
    x = model.input(1, 8, 7, 40)
    return model.finish(model.max_pool(model.sign(x) if sign else x, 3, 2, same=True, activation=activation))


def test_pooling_of_signs_is_pooling_of_bits() -> None:
    source = pooled_sign()
    result = rewritten(source, recognize_signs, work_on_bits)
    assert op_names(result)[-2:] == ["LceBMaxPool2d", "LceDequantize"]
    assert result.graphs[0].ops[-2].output.dims == (1, 4, 4, 2)
    assert_same_values(source, result)


@pytest.mark.filterwarnings("ignore:no binary layer")
@pytest.mark.parametrize("shape", [(), (1, 5, 4, 2), (2, 4, 4, 40), (1, 5, 4, 40)])
@pytest.mark.parametrize("sign_first", [True, False])
def test_a_pool_that_declares_another_size_stays(sign_first: bool, shape: tuple[int, ...]) -> None:
    rng = np.random.default_rng(0)
    model = FloatModel()
    x = model.input(1, 8, 7, 40)
    x = model.sign(x) if sign_first else model.conv(model.sign(x), sign_weights(rng, 40, 1, 1, 40))
    pooled = model.max_pool(x, 3, 2, same=True)
    y = model.conv(pooled if sign_first else model.sign(pooled), sign_weights(rng, 8, 1, 1, 40))
    pooled.shape = shape
    converted = litebnn.convert_tflite(model.finish(y))
    assert "MAX_POOL_2D" in op_names(converted)


@pytest.mark.filterwarnings("ignore:no binary layer")
@pytest.mark.parametrize("source", [pooled_sign("relu"), pooled_sign(sign=False)])
def test_other_pooling_stays(source: bytes) -> None:
    assert op_names(rewritten(source, recognize_signs, work_on_bits))[-1] == "MAX_POOL_2D"


@pytest.mark.parametrize("channels", [33, 40, 48])
@pytest.mark.parametrize("flattened", [False, True])
def test_signs_that_no_word_pads_are_packed_before_they_are_pooled(channels: int, flattened: bool) -> None:
    model, rng = FloatModel(), np.random.default_rng(0)
    signs = model.pad(model.sign(model.input(1, 8, 8, channels)), [(1, 1), (1, 1)], -1.0)
    pooled = model.max_pool(signs, 2, 2)
    if flattened:
        output = model.dense(model.reshape(pooled, 1, 25 * channels), sign_weights(rng, 8, 25 * channels))
    else:
        output = model.conv(pooled, sign_weights(rng, 8, 3, 3, channels))
    source = model.finish(output)
    converted = litebnn.convert_tflite(source)
    names = op_names(converted)
    assert "MAX_POOL_2D" not in names
    assert {"LceBMaxPool2d", "LceBconv2d"} <= set(names)
    assert_same_values(source, read_model(converted))


@pytest.mark.filterwarnings("ignore:no binary layer")
def test_what_is_padded_with_another_number_is_no_sign_to_pool() -> None:
    model = FloatModel()
    signs = model.pad(model.sign(model.input(1, 8, 8, 40)), [(1, 1), (1, 1)], -2.0)
    assert "MAX_POOL_2D" in op_names(litebnn.convert_tflite(model.finish(model.max_pool(signs, 2, 2))))
