"""Tests the preprocessing of samples for quantized models."""

import math
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from litebnn.evaluate.batches import Samples
from litebnn.evaluate.recipes import open_recipe
from litebnn.evaluate.scoring import Ready


def level(value: float, scale: float, zero_point: int) -> int:
    """The int8 level that QUANTIZE gives a value. The op divides in float32 and rounds halves away from zero."""
    steps = float(np.float32(value) / np.float32(scale))
    rounded = int(math.copysign(math.floor(abs(steps) + 0.5), steps))
    return min(max(rounded + zero_point, -128), 127)


# The first two recipes turn a pixel p into (p - 127.5) times the scale. Apart from float rounding, this value lies
# halfway between two int8 levels.
@pytest.mark.parametrize(
    ("recipe", "scale", "zero_point"), [("[-1,1]", 2 / 255, -1), ("127.5/1", 1.0, -1), ("[0,1]", 0.01, -20)]
)
def test_pixels_become_levels_as_in_quantize(recipe: str, scale: float, zero_point: int) -> None:
    pixels = np.arange(256, dtype=np.uint8).reshape(16, 16, 1)
    model = SimpleNamespace(
        input_shapes=[(1, 16, 16, 1)],
        input_types=[np.dtype(np.int8)],
        input_quantization=[(float(np.float32(scale)), zero_point)],
    )
    levels = Ready("model", cast(Any, model), open_recipe(recipe)).inputs(Samples([pixels], None))
    values = open_recipe(recipe).prepared()(pixels, (16, 16, 1)).ravel()
    assert levels.ravel().tolist() == [level(value, scale, zero_point) for value in values]
