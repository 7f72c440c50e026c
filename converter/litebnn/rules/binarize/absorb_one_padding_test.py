import numpy as np
import pytest

from litebnn.contract import Padding, PadValues
from litebnn.graph import Op
from litebnn.rules.binarize.absorb_one_padding import absorb_one_padding
from litebnn.rules.binarize.binarize_layers import binarize_layers
from litebnn.rules.build.bconv import bconv_options
from litebnn.rules.thresholds.recognize_signs import recognize_signs
from litebnn.rules.thresholds.work_on_bits import work_on_bits
from tests.support.float_models import FloatModel, assert_same_values, rewritten, sign_weights

BINARIZE = (recognize_signs, work_on_bits, binarize_layers)
WEIGHTS = sign_weights(np.random.default_rng(0), 8, 3, 3, 32)


def padded_conv(value: float, amounts: list[tuple[int, int]], stride: int = 1, unknown: bool = False) -> bytes:
    model = FloatModel()
    x = model.input(1, 6, 8, 32, signature=(-1, -1, -1, 32) if unknown else None)
    return model.finish(model.conv(model.pad(model.sign(x), amounts, value), WEIGHTS, stride=(stride, stride)))


def absorbed(source: bytes) -> Op:
    return rewritten(source, *BINARIZE, absorb_one_padding).graphs[0].ops[-1]


@pytest.mark.parametrize(("amounts", "stride"), [([(1, 1), (1, 1)], 1), ([(0, 1), (0, 1)], 2)])
def test_padding_that_is_same_becomes_an_option(amounts: list[tuple[int, int]], stride: int) -> None:
    source = padded_conv(1.0, amounts, stride)
    model = rewritten(source, *BINARIZE, absorb_one_padding)
    options = bconv_options(model.graphs[0].ops[-1])
    assert (options.padding, options.pad_values) == (Padding.SAME, PadValues.ONE)
    producer = model.graphs[0].producer(model.graphs[0].ops[-1].input(0))
    assert producer is not None
    assert producer.name == "LceQuantize"
    assert_same_values(source, model)


@pytest.mark.parametrize(("amounts", "stride"), [([(1, 1), (1, 1)], 2), ([(2, 0), (1, 1)], 1)])
def test_other_padding_is_explicit(amounts: list[tuple[int, int]], stride: int) -> None:
    source = padded_conv(1.0, amounts, stride)
    model = rewritten(source, *BINARIZE, absorb_one_padding)
    options = bconv_options(model.graphs[0].ops[-1])
    assert (options.explicit_padding, options.pad_values) == (tuple(amounts), PadValues.ONE)
    assert_same_values(source, model)


def test_padding_with_minus_one_stays_a_padding_of_the_bits() -> None:
    assert bconv_options(absorbed(padded_conv(-1.0, [(1, 1), (1, 1)]))).padding == Padding.VALID


@pytest.mark.parametrize(("stride", "padding"), [(1, Padding.SAME), (2, None)])
def test_same_of_an_unknown_size_is_known_where_the_stride_is_1(stride: int, padding: Padding | None) -> None:
    op = absorbed(padded_conv(1.0, [(1, 1), (1, 1)], stride, unknown=True))
    assert bconv_options(op).padding == padding
