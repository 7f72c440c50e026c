import numpy as np
import pytest

import litebnn
from litebnn.passes.find_signs.pool_bits import pool_bits
from litebnn.passes.find_signs.recognize_signs import recognize_signs
from tests.support.float_models import FloatModel, assert_same_values, op_names, rewritten, sign_weights


def pooled_sign(activation: str = "none", *, sign: bool = True) -> bytes:
    model = FloatModel()
    x = model.input(1, 8, 7, 40)
    return model.finish(model.max_pool(model.sign(x) if sign else x, 3, 2, same=True, activation=activation))


@pytest.mark.usefixtures("library")
def test_pooling_of_signs_is_pooling_of_bits() -> None:
    source = pooled_sign()
    result = rewritten(source, recognize_signs, pool_bits)
    assert op_names(result)[-2:] == ["LceBMaxPool2d", "LceDequantize"]
    assert result.graphs[0].ops[-2].output.dims == (1, 4, 4, 2)
    assert_same_values(source, result)


@pytest.mark.filterwarnings("ignore:no binary layer")
@pytest.mark.parametrize("shape", [(), (1, 5, 4, 2), (2, 4, 4, 40), (1, 5, 4, 40)])
@pytest.mark.parametrize("sign_first", [True, False])
def test_a_pool_that_declares_another_size_stays(sign_first: bool, shape: tuple[int, ...]) -> None:
    rng = np.random.default_rng(0)
    model = FloatModel()
    x = model.input(1, 8, 7, 40)
    x = model.sign(x) if sign_first else model.conv(model.sign(x), sign_weights(rng, 40, 1, 1, 40))
    pooled = model.max_pool(x, 3, 2, same=True)
    y = model.conv(pooled if sign_first else model.sign(pooled), sign_weights(rng, 8, 1, 1, 40))
    pooled.shape = shape
    converted = litebnn.convert_tflite(model.finish(y))
    assert "MAX_POOL_2D" in op_names(converted)


@pytest.mark.filterwarnings("ignore:no binary layer")
@pytest.mark.parametrize("source", [pooled_sign("relu"), pooled_sign(sign=False)])
def test_other_pooling_stays(source: bytes) -> None:
    assert op_names(rewritten(source, recognize_signs, pool_bits))[-1] == "MAX_POOL_2D"
