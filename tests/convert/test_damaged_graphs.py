"""Tests that the converter either converts a damaged graph, or refuses it with a reason."""

import random

import pytest

import litebnn
from litebnn.errors import Defect
from tests.support.damage import damaged

pytestmark = [
    pytest.mark.filterwarnings("ignore:no binary layer"),
    pytest.mark.filterwarnings("ignore:experimental_default_int8_range"),
]


def _convert_damaged(seed: int) -> None:
    model, options = damaged(random.Random(seed))
    try:
        litebnn.convert_tflite(model, **options)
    except Defect:
        raise
    except litebnn.ConversionError:
        pass


@pytest.mark.parametrize("start", range(0, 400, 100))
def test_a_damaged_graph_is_converted_or_refused(start: int) -> None:
    for seed in range(start, start + 100):
        _convert_damaged(seed)


@pytest.mark.long
@pytest.mark.parametrize("start", range(1000, 21000, 1000))
def test_many_damaged_graphs_are_converted_or_refused(start: int) -> None:
    for seed in range(start, start + 1000):
        _convert_damaged(seed)
