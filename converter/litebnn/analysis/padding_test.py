import numpy as np
import pytest

from litebnn.analysis.padding import constant_padding, layer_padding, same_amounts
from tests.support.float_models import FloatModel


@pytest.mark.parametrize(
    ("size", "taps", "stride", "dilation", "expected"),
    [
        (10, 3, 1, 1, (1, 1)),
        (10, 3, 2, 1, (0, 1)),
        (9, 3, 2, 1, (1, 1)),
        (10, 5, 1, 2, (4, 4)),
        (10, 2, 1, 1, (0, 1)),
        (10, 1, 3, 1, (0, 0)),
        (1, 3, 2, 1, (1, 1)),
        (-1, 3, 1, 1, (1, 1)),
        (-1, 1, 2, 1, (0, 0)),
        (-1, 3, 2, 1, None),
    ],
)
def test_same_padding_splits_as_tensorflow_does(
    size: int, taps: int, stride: int, dilation: int, expected: tuple[int, int] | None
) -> None:
    assert same_amounts(size, taps, stride, dilation) == expected


def test_padding_that_claims_another_shape_than_it_makes_is_not_known() -> None:
    model = FloatModel()
    padded = model.pad(model.input(1, 6, 6, 32), [(1, 1), (1, 1)])
    op = model.graph.ops[-1]
    assert constant_padding(op) is not None
    for shape in ((1, 8, 8, 0), (1, 8, 9, 32), (1, 8, 8, 1, 32), ()):
        padded.shape = shape
        assert constant_padding(op) is None


def test_the_padding_of_a_layer_without_a_shape_is_not_known() -> None:
    model = FloatModel()
    x = model.input(1, 6, 6, 32)
    model.conv(x, np.ones((8, 3, 3, 32)), same=True)
    assert layer_padding(model.graph.ops[-1]) == ((1, 1), (1, 1))
    x.shape = ()
    assert layer_padding(model.graph.ops[-1]) is None
