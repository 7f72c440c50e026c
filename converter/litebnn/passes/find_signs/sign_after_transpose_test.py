import numpy as np
import pytest

import litebnn
from litebnn.graph import Tensor
from litebnn.passes import BINARY_PHASES, run_phases
from litebnn.rewriting.notes import Notes
from tests.support.float_models import FloatModel, dyadic, op_names, sign_weights

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
