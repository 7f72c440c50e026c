import numpy as np
import pytest

from litebnn.contract import Padding
from litebnn.passes.binarize.absorb_zero_padding import absorb_zero_padding
from litebnn.passes.find_signs.recognize_signs import recognize_signs
from litebnn.rewriting.notes import Notes
from tests.support.float_models import FloatModel, assert_same_values, rewritten, run_pass, sign_weights

WEIGHTS = sign_weights(np.random.default_rng(0), 8, 3, 3, 32)


def padded_conv(value: float | None, amounts: list[tuple[int, int]], *, sign: bool = True) -> FloatModel:
    model = FloatModel()
    x = model.input(1, 6, 6, 32)
    model.conv(model.pad(model.sign(x) if sign else x, amounts, value), WEIGHTS)
    return model


@pytest.mark.usefixtures("library")
@pytest.mark.parametrize("value", [None, 0.0])
def test_padding_that_is_same_becomes_an_option(value: float | None) -> None:
    model = padded_conv(value, [(1, 1), (1, 1)])
    source = model.finish(model.graph.ops[-1].output)
    result = rewritten(source, recognize_signs, absorb_zero_padding)
    op = result.graphs[0].ops[-1]
    assert op.options.padding == Padding.SAME
    assert result.graphs[0].producer(op.input(0)) is not None
    assert op.input(0).dims == (1, 6, 6, 32)
    assert_same_values(source, result)


@pytest.mark.parametrize(
    ("value", "amounts", "reason"),
    [(None, [(2, 1), (1, 1)], "is not SAME, and 0 is no ±1"), (0.5, [(1, 1), (1, 1)], "neither 0 nor ±1")],
)
def test_other_padding_is_a_reason(value: float | None, amounts: list[tuple[int, int]], reason: str) -> None:
    model = padded_conv(value, amounts)
    built = model.model(model.graph.ops[-1].output)
    notes = Notes(built)
    recognize_signs(built.graphs[0], notes)
    assert not absorb_zero_padding(built.graphs[0], notes)
    assert built.graphs[0].ops[-1].options.padding == Padding.VALID
    assert reason in " ".join(notes.layers[0].reasons)


def test_the_padding_of_a_float_layer_stays() -> None:
    model = padded_conv(None, [(1, 1), (1, 1)], sign=False)
    assert run_pass(absorb_zero_padding, model.model(model.graph.ops[-1].output)) == (False, ["PAD", "CONV_2D"])
