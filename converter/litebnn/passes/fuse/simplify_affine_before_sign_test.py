import numpy as np

from litebnn.passes import BINARY_PHASES, run_phases
from litebnn.rewriting.notes import Notes
from tests.support.float_models import FloatModel, op_names, sign_weights

RNG = np.random.default_rng(0)


def names_of(scale: object, shift: object, *, one_padding: bool = False) -> list[str]:
    model = FloatModel()
    x = model.elementwise("MUL", model.input(1, 8, 8, 32), model.const(scale))
    x = model.sign(model.elementwise("ADD", x, model.const(shift)))
    if one_padding:
        x = model.pad(x, [(1, 1), (1, 1)], 1.0)
    built = model.model(model.conv(x, sign_weights(RNG, 8, 3, 3, 32)))
    run_phases(built, BINARY_PHASES, Notes(built))
    return op_names(built)


def test_a_batch_norm_in_front_of_a_sign_is_one_addition() -> None:
    assert names_of(np.full(32, 3), np.arange(32)) == ["ADD", "LceQuantize", "LceBconv2d"]
    assert names_of(np.where(np.arange(32) < 3, -1, 1), np.arange(32)) == ["ADD", "LceQuantize", "LceBconv2d"]


def test_a_positive_scale_alone_means_nothing_to_a_sign() -> None:
    assert names_of(np.full(32, 3), np.zeros(1)) == ["LceQuantize", "LceBconv2d"]


def test_where_a_channel_cannot_be_negated_the_batch_norm_stays() -> None:
    negative = np.where(np.arange(32) < 3, -1, 1)
    assert names_of(negative, np.ones(32), one_padding=True) == ["MUL", "ADD", "LceQuantize", "LceBconv2d"]
    assert names_of(np.zeros(32), np.ones(32)) == ["MUL", "ADD", "LceQuantize", "LceBconv2d"]
