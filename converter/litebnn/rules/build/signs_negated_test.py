import numpy as np
import pytest

from litebnn.contract import unpack_bits
from litebnn.graph import Graph, Op
from litebnn.rules.build.signs import can_negate_channels, negate_channels
from tests.support.float_models import FloatModel, binarized, sign_weights

RNG = np.random.default_rng(0)


def binary_graph(groups: int = 1, *, ones: bool = False, taps: int = 3) -> tuple[Graph, Op]:
    model = FloatModel()
    x = model.sign(model.input(1, 8, 8, 64))
    x = model.pad(x, [(1, 1), (1, 1)], 1.0) if ones else x
    built, _ = binarized(model, model.conv(x, sign_weights(RNG, 8, taps, taps, 64 // groups)))
    return built.graphs[0], built.graphs[0].ops[-1]


@pytest.mark.parametrize("groups", [1, 2])
def test_the_filters_expect_the_negated_channels(groups: int) -> None:
    graph, op = binary_graph(groups)
    channels = 64 // groups
    before = unpack_bits(np.array(op.input(1).array), channels)
    negative = RNG.random(64) < 0.5
    assert can_negate_channels(graph, op.input(0))
    negate_channels(graph, op.input(0), negative)
    words = op.input(1).array
    assert words is not None
    changed = unpack_bits(words, channels) != before
    for output in range(8):
        group = output // (8 // groups)
        expected = np.broadcast_to(negative[group * channels : (group + 1) * channels], (3, 3, channels))
        np.testing.assert_array_equal(changed[output], expected)


def test_padding_with_ones_forbids_it() -> None:
    graph, op = binary_graph(ones=True)
    assert not can_negate_channels(graph, op.input(0))
