import numpy as np
import pytest

import litebnn
from litebnn.flatbuffer import read_model
from litebnn.graph import Tensor
from litebnn.passes import BINARY_PHASES, run_phases
from litebnn.rewriting.notes import Notes
from tests.support.float_models import FloatModel, assert_same_values, dyadic, op_names, sign_weights

RNG = np.random.default_rng(0)
TO_CHANNELS_LAST, TO_CHANNELS_FIRST = [0, 2, 3, 1], [0, 3, 1, 2]


def turn(model: FloatModel, x: Tensor, order: list[int]) -> Tensor:
    shape = [x.dims[axis] for axis in order]
    return model.op("TRANSPOSE", [x, model.const(order, np.int32)], shape)


def channels_first() -> FloatModel:
    """Two binary convolutions as a channel-first framework leaves them."""
    model = FloatModel()
    x = model.input(1, 64, 6, 5)
    for _ in range(2):
        y = model.conv(turn(model, model.sign(x), TO_CHANNELS_LAST), sign_weights(RNG, 64, 3, 3, 64), same=True)
        x = turn(model, y, TO_CHANNELS_FIRST)
    return model


def test_they_cancel_between_layers() -> None:
    model = channels_first()
    built = model.model(model.graph.ops[-1].output)
    run_phases(built, BINARY_PHASES, Notes(built))
    assert op_names(built) == ["TRANSPOSE", "LceQuantize", "LceBconv2d", "LceBconv2d", "TRANSPOSE"]


@pytest.mark.usefixtures("library")
def test_the_values_stay() -> None:
    model = channels_first()
    source = model.finish(model.graph.ops[-1].output)
    x = dyadic(RNG, 1, 64, 6, 5)
    expected, actual = (litebnn.Interpreter(m).predict(x) for m in (source, litebnn.convert_tflite(source)))
    np.testing.assert_array_equal(actual, expected)


def moved(model: FloatModel, kind: str) -> Tensor:
    """A sign whose bits are computed from those that were packed."""
    if kind == "broadcast":
        row = model.elementwise("GREATER_EQUAL", model.input(1, 1, 4, 1), model.const(0), type="BOOL")
        return model.op("SELECT_V2", [row, model.const(np.ones((1, 5, 4, 40))), model.const(-1)], (1, 5, 4, 40))
    return model.max_pool(model.sign(model.input(1, 5, 4, 40)), 2, 2)


@pytest.mark.usefixtures("library")
@pytest.mark.parametrize("kind", ["broadcast", "pooled"])
def test_bits_that_are_computed_from_bits_are_packed_anew(kind: str) -> None:
    model = FloatModel()
    x = turn(model, moved(model, kind), TO_CHANNELS_FIRST)
    source = model.finish(model.conv(x, sign_weights(RNG, 8, 1, 1, x.channels)))
    converted, report = litebnn.convert_tflite(source, return_report=True)
    assert report.layers[0].binary
    assert_same_values(source, read_model(converted))
