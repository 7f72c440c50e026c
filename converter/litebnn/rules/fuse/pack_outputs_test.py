import numpy as np
import pytest

from litebnn.contract import ALWAYS_MINUS_ONE, ALWAYS_PLUS_ONE
from litebnn.rules.build.notes import Notes
from tests.support.float_models import FloatModel, binarized, op_names, sign_weights

RNG = np.random.default_rng(0)


def two_layers(channels: int, *, same: bool, scale: object = 1.0, shift: object = 0.5) -> tuple[FloatModel, Notes]:
    model = FloatModel()
    x = model.conv(model.sign(model.input(1, 8, 8, channels)), sign_weights(RNG, 32, 3, 3, channels), same=same)
    x = model.elementwise("ADD", model.elementwise("MUL", x, model.const(scale)), model.const(shift))
    built, notes = binarized(model, model.conv(model.sign(x), sign_weights(RNG, 8, 3, 3, 32)))
    model.graph = built.graphs[0]
    return model, notes


@pytest.mark.parametrize(("channels", "same"), [(32, False), (32, True), (40, True), (33, False)])
def test_layers_hand_on_bits(channels: int, same: bool) -> None:
    model, _ = two_layers(channels, same=same)
    assert [op.name for op in model.graph.ops] == ["LceQuantize", "LceBconv2d", "LceBconv2d"]
    first = model.graph.ops[1]
    assert first.output.type == "INT32"
    assert [tensor is None for tensor in first.inputs] == [False, False, True, True, False]


def test_half_a_channel_is_no_count() -> None:
    model, notes = two_layers(33, same=True)
    assert model.graph.ops[1].output.type == "FLOAT32"
    assert "odd number of channels" in " ".join(notes.layers[0].reasons)


def test_a_sign_that_never_changes_has_an_extreme_threshold() -> None:
    shift = np.where(np.arange(32) % 2, 3.0, -3.0)
    model, _ = two_layers(32, same=False, scale=np.zeros(32), shift=shift)
    expected = np.where(shift > 0, ALWAYS_PLUS_ONE, ALWAYS_MINUS_ONE)
    np.testing.assert_array_equal(model.graph.ops[1].input(4).array, expected)


def test_an_output_that_is_read_as_float_stays_float() -> None:
    model = FloatModel()
    x = model.conv(model.sign(model.input(1, 8, 8, 32)), sign_weights(RNG, 32, 3, 3, 32))
    built, _ = binarized(model, model.conv(model.sign(x), sign_weights(RNG, 8, 3, 3, 32)), model.elementwise("NEG", x))
    assert sorted(op_names(built)) == ["LceBconv2d", "LceBconv2d", "LceQuantize", "LceQuantize", "NEG"]


def test_not_a_number_is_no_threshold() -> None:
    model, _ = two_layers(32, same=False, shift=np.full(32, np.nan))
    assert model.graph.ops[1].output.type == "FLOAT32"


def test_an_output_of_the_model_stays_float() -> None:
    model = FloatModel()
    x = model.conv(model.sign(model.input(1, 8, 8, 32)), sign_weights(RNG, 32, 3, 3, 32))
    built, _ = binarized(model, model.conv(model.sign(x), sign_weights(RNG, 8, 3, 3, 32)), x)
    assert op_names(built) == ["LceQuantize", "LceBconv2d", "LceQuantize", "LceBconv2d"]
    assert [output.type for output in built.graphs[0].outputs] == ["FLOAT32", "FLOAT32"]
