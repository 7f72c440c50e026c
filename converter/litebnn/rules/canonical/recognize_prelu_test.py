import numpy as np
import pytest

from litebnn.graph import Tensor
from litebnn.rules.canonical.recognize_prelu import recognize_prelu
from litebnn.rules.phases import rules_of
from tests.support.float_models import FloatModel, assert_same_values, op_names, rewritten, run_pass


def spelled_out(model: FloatModel, x: Tensor, slopes: object, form: str) -> Tensor:
    if form == "fused":
        opposite = model.elementwise("MUL", x, model.const(-1), activation="relu")
    elif form == "neg":
        opposite = model.elementwise("RELU", model.elementwise("NEG", x))
    else:
        opposite = model.elementwise("RELU", model.elementwise("MUL", x, model.const(-1)))
    return model.elementwise(
        "SUB", model.elementwise("RELU", x), model.elementwise("MUL", opposite, model.const(slopes))
    )


@pytest.mark.parametrize("form", ["fused", "neg", "mul"])
@pytest.mark.parametrize("slopes", [0.25, np.arange(8).reshape(1, 1, 1, 8) / 4])
def test_what_it_is_written_as_is_one_op(form: str, slopes: object) -> None:
    model = FloatModel()
    source = model.finish(spelled_out(model, model.input(1, 3, 3, 8), slopes, form))
    result = rewritten(source, recognize_prelu, *rules_of("tidy"))
    assert op_names(result) == ["PRELU"]
    assert_same_values(source, result)


def test_slopes_may_carry_the_minus() -> None:
    model = FloatModel()
    x = model.input(1, 3, 3, 8)
    below = model.elementwise("MUL", model.elementwise("RELU", model.elementwise("NEG", x)), model.const(-0.25))
    source = model.finish(model.elementwise("ADD", model.elementwise("RELU", x), below))
    result = rewritten(source, recognize_prelu, *rules_of("tidy"))
    assert op_names(result) == ["PRELU"]
    assert_same_values(source, result)


def test_a_row_of_channels_alone_stays() -> None:
    """The slopes of a PRELU have the shape of its input without the batch axis. The input here has only channels, so
    the slopes would have no axis."""
    model = FloatModel()
    assert not run_pass(recognize_prelu, model.model(spelled_out(model, model.input(8), 0.25, "neg")))[0]


def test_parts_of_different_tensors_stay() -> None:
    model = FloatModel()
    x, other = model.input(1, 3, 3, 8), model.input(1, 3, 3, 8)
    opposite = model.elementwise("MUL", other, model.const(-1), activation="relu")
    twice = model.elementwise("MUL", x, model.const(-2), activation="relu")
    outputs = [
        model.elementwise("SUB", model.elementwise("RELU", x), model.elementwise("MUL", part, model.const(0.5)))
        for part in (opposite, twice)
    ]
    changed, _ = run_pass(recognize_prelu, model.model(*outputs))
    assert not changed
