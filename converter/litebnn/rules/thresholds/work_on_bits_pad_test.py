import numpy as np
import pytest

from litebnn.rules.binarize.binarize_layers import binarize_layers
from litebnn.rules.thresholds.recognize_signs import recognize_signs
from litebnn.rules.thresholds.work_on_bits import work_on_bits
from tests.support.float_models import FloatModel, assert_same_values, op_names, rewritten, sign_weights

AMOUNTS = [(1, 0), (2, 1)]


def padded(value: float, channels: int) -> bytes:
    model = FloatModel()
    return model.finish(model.pad(model.sign(model.input(1, 4, 5, channels)), AMOUNTS, value))


@pytest.mark.parametrize(("value", "channels"), [(1.0, 64), (1.0, 40), (-1.0, 64), (-1.0, 20)])
def test_padding_with_signs_is_padding_of_bits(value: float, channels: int) -> None:
    source = padded(value, channels)
    result = rewritten(source, recognize_signs, work_on_bits)
    assert op_names(result)[-2:] == ["PADV2", "LceDequantize"]
    assert result.graphs[0].ops[-2].output.type == "INT32"
    assert_same_values(source, result)


def test_where_the_words_of_a_pixel_differ_the_signs_are_padded() -> None:
    """A padding word with 32 times -1 would also set the unused bits after the 40th channel."""
    model = FloatModel()
    y = model.pad(model.sign(model.input(1, 4, 5, 40)), AMOUNTS, -1.0)
    source = model.finish(model.conv(y, sign_weights(np.random.default_rng(0), 8, 3, 3, 40)))
    result = rewritten(source, recognize_signs, work_on_bits, binarize_layers)
    assert op_names(result)[-4:] == ["LceDequantize", "PADV2", "LceQuantize", "LceBconv2d"]
    assert_same_values(source, result)


@pytest.mark.parametrize("value", [0.0, 0.5])
def test_other_padding_stays(value: float) -> None:
    assert op_names(rewritten(padded(value, 64), recognize_signs, work_on_bits))[-2:] == ["LceDequantize", "PADV2"]


def test_padding_that_claims_other_channels_than_its_input_stays() -> None:
    model = FloatModel()
    y = model.pad(model.sign(model.input(1, 4, 5, 32)), AMOUNTS, 1.0)
    y.shape = (*y.shape[:3], 0)
    convolved = model.conv(y, np.ones((8, 3, 3, 32)))
    result = rewritten(model.finish(convolved), recognize_signs, work_on_bits, binarize_layers)
    assert op_names(result)[-2:] == ["PADV2", "CONV_2D"]
