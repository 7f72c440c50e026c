"""Tests the preprocessing of samples for quantized models."""

import math
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from litebnn.evaluate.batches import Samples
from litebnn.evaluate.recipes import open_recipe
from litebnn.evaluate.scoring import Model, Ready, Scoring
from litebnn.runtime import Interpreter
from tests.support.float_models import FloatModel, recurrent_model


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


def batch_of(samples: list[np.ndarray]) -> Any:
    return SimpleNamespace(part=SimpleNamespace(load=lambda: Samples(samples, None)))


def any_size_classifier() -> bytes:
    """The mean of each channel of a convolution, as scores of images of any height and width."""
    rng = np.random.default_rng(0)
    model = FloatModel()
    x = model.conv(model.input(1, 1, 1, 3, signature=(-1, -1, -1, 3)), rng.standard_normal((6, 3, 3, 3)))
    axes = model.const((1, 2), np.int32)
    return model.finish(model.op("MEAN", [x, axes], (-1, 6), keep_dims=False))


@pytest.mark.usefixtures("library")
@pytest.mark.parametrize("dtype", [np.uint8, np.float32])
def test_images_keep_their_own_size_if_the_model_takes_any(dtype: Any) -> None:
    rng = np.random.default_rng(0)
    samples = [rng.integers(0, 256, (height, width, 3)).astype(dtype) for height, width in ((9, 4), (3, 30), (9, 4))]
    content = any_size_classifier()
    result = Scoring((Model("any", content),), open_recipe("[-1,1]")).prepared()(batch_of(samples))
    scores = [Interpreter(content).predict((sample[None] / 127.5 - 1).astype(np.float32)) for sample in samples]
    assert [top[0] for top in result["top"][0]] == [int(row.argmax()) for row in scores]


@pytest.mark.usefixtures("library")
def test_no_sample_reaches_the_next_by_a_state() -> None:
    content = recurrent_model()
    samples = list(np.random.default_rng(0).standard_normal((20, 3, 32)).astype(np.float32))
    result = Scoring((Model("recurrent", content),), open_recipe("none")).prepared()(batch_of(samples))
    alone = [Interpreter(content).predict(sample[None]) for sample in samples]
    assert [top[0] for top in result["top"][0]] == [int(row.argmax()) for row in alone]
