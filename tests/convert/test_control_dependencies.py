"""Tests source models with control dependencies, which name ops by indices. A conversion changes these indices."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import litebnn
from litebnn.flatbuffer import read_model, write_model
from litebnn.graph import Buffer
from litebnn.graph.origin import METADATA as ORIGINS
from tests.support.float_models import FloatModel

GOLDEN = Path(__file__).parents[1] / "golden"
SAMPLES = np.load(GOLDEN / "residual.npz")["input"]


def waiting(source: bytes) -> bytes:
    """A file in which each op depends on the op before it."""
    model = read_model(source)
    places = [2 * place for after in range(1, len(model.graphs[0].ops)) for place in (after - 1, after)]
    dependencies = Buffer(np.asarray([1, 1, len(places) // 2, *places], np.uint8))
    model.metadata.append(("model_control_dependencies", dependencies))
    model.buffers.append(dependencies)
    return write_model(model)


def names(model: bytes) -> list[str]:
    return [name for name, _ in read_model(model).metadata]


@pytest.mark.parametrize("options", [{}, {"representative_dataset": [SAMPLES]}])
def test_the_result_has_none(options: dict[str, Any]) -> None:
    source = (GOLDEN / "residual.float.tflite").read_bytes()
    converted = litebnn.convert_tflite(waiting(source), verify=True, **options)
    assert names(converted) == [*names(source), ORIGINS]
    [actual], [expected] = (
        np.atleast_2d(litebnn.Interpreter(m).predict(SAMPLES[:1]))
        for m in (converted, litebnn.convert_tflite(source, **options))
    )
    np.testing.assert_array_equal(actual, expected)


def test_what_only_its_weights_change_has_none() -> None:
    model = FloatModel()
    weights = model.elementwise("RELU", model.const(np.arange(8).reshape(2, 4)))
    source = model.finish(model.dense(model.input(1, 4), weights))
    with pytest.warns(UserWarning, match="no binary layer"):
        converted = litebnn.convert_tflite(waiting(source))
    assert [op.name for op in read_model(converted).ops()] == ["FULLY_CONNECTED"]
    assert names(converted) == []


@pytest.mark.filterwarnings("ignore:no binary layer")
def test_what_stays_as_it_is_keeps_them() -> None:
    model = FloatModel()
    source = waiting(model.finish(model.elementwise("ABS", model.elementwise("ABS", model.input(1, 4)))))
    assert litebnn.convert_tflite(source) == source


def test_what_is_converted_already_has_none() -> None:
    source = waiting((GOLDEN / "residual.lce.tflite").read_bytes())
    with pytest.raises(litebnn.ConversionError, match="the model would not load: .* waits for op .*, expected none"):
        litebnn.convert_tflite(source)
