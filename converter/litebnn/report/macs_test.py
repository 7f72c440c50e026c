import math

import numpy as np
import pytest

from litebnn.graph import Tensor
from litebnn.report.macs import count_macs
from tests.support.float_models import FloatModel


def conv_3d(model: FloatModel) -> Tensor:
    x, weights = model.input(1, 4, 5, 6, 3), model.const(np.ones((2, 3, 1, 3, 8)))
    strides = {f"stride_{axis}": 1 for axis in ("d", "h", "w")}
    return model.op("CONV_3D", [x, weights], (1, 3, 3, 6, 8), padding=1, **strides)


LAYERS = {
    "conv": (lambda model: model.conv(model.input(1, 5, 6, 4), np.ones((8, 2, 3, 4))), 4 * 4 * 8 * 2 * 3 * 4),
    "dense": (lambda model: model.dense(model.input(2, 7), np.ones((3, 7))), 2 * 3 * 7),
    "conv 3d": (conv_3d, 3 * 3 * 6 * 8 * math.prod((2, 3, 1, 3))),
}


@pytest.mark.parametrize("layer", LAYERS)
def test_the_work_of_a_layer(layer: str) -> None:
    build, macs = LAYERS[layer]
    model = FloatModel()
    assert count_macs(model.finish(build(model))) == (0, 0, macs)
