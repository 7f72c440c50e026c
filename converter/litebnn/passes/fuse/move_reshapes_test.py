import numpy as np
import pytest

from litebnn.passes import BINARY_PHASES, run_phases
from litebnn.rewriting.notes import Notes
from tests.support.float_models import FloatModel, op_names, sign_weights

RNG = np.random.default_rng(0)


@pytest.mark.parametrize("sign_first", [True, False])
def test_a_flatten_between_binary_layers_is_one_of_bits(sign_first: bool) -> None:
    model = FloatModel()
    x = model.conv(model.sign(model.input(1, 5, 5, 32)), sign_weights(RNG, 64, 3, 3, 32))
    x = model.reshape(model.sign(x), 1, 576) if sign_first else model.sign(model.reshape(x, 1, 576))
    x = model.dense(x, sign_weights(RNG, 10, 576), np.ones(10))
    x = model.elementwise("ADD", model.elementwise("MUL", x, model.const(np.full(10, 2))), model.const(np.ones(10)))
    built = model.model(x)
    run_phases(built, BINARY_PHASES, Notes(built))
    assert op_names(built) == ["LceQuantize", "LceBconv2d", "RESHAPE", "LceBconv2d", "RESHAPE"]
    bits = built.graphs[0].ops[2].output
    assert (bits.type, bits.dims) == ("INT32", (1, 1, 1, 18))


def test_a_flatten_of_channels_that_fill_no_words_happens_before_the_sign() -> None:
    model = FloatModel()
    x = model.reshape(model.sign(model.input(1, 3, 3, 40)), 1, 360)
    built = model.model(model.dense(x, sign_weights(RNG, 10, 360)))
    run_phases(built, BINARY_PHASES, Notes(built))
    assert op_names(built) == ["RESHAPE", "LceQuantize", "RESHAPE", "LceBconv2d", "RESHAPE"]
