import numpy as np
import pytest

from litebnn.graph import Tensor
from litebnn.passes import BINARY_PHASES, run_phases
from litebnn.rewriting.notes import Notes
from tests.support.float_models import FloatModel, op_names, sign_weights

RNG = np.random.default_rng(0)


def between_layers(kind: str, slope: float = 0.5) -> list[str]:
    model = FloatModel()
    x = model.conv(model.sign(model.input(1, 8, 8, 32)), sign_weights(RNG, 32, 3, 3, 32), np.full(32, 3.0))
    y: Tensor
    if kind == "LEAKY_RELU":
        y = model.op(kind, [x], x.dims, alpha=slope)
    elif kind in ("MINIMUM", "MAXIMUM"):
        y = model.elementwise(kind, x, model.const(slope))
    elif kind == "PRELU":
        y = model.op(kind, [x, model.const(np.full((1, 1, 32), slope))], x.dims)
    else:
        y = model.op(kind, [x], x.dims)
    built = model.model(model.conv(model.sign(y), sign_weights(RNG, 8, 3, 3, 32)))
    run_phases(built, BINARY_PHASES, Notes(built))
    return op_names(built)


@pytest.mark.parametrize("kind", ["TANH", "ELU", "RELU_N1_TO_1", "LEAKY_RELU", "PRELU"])
def test_what_keeps_signs_goes(kind: str) -> None:
    assert between_layers(kind) == ["LceQuantize", "LceBconv2d", "LceBconv2d"]


@pytest.mark.parametrize(("kind", "slope"), [("MINIMUM", 1.0), ("MAXIMUM", -1.0)])
def test_a_clamp_on_the_other_side_of_zero_goes(kind: str, slope: float) -> None:
    assert between_layers(kind, slope) == ["LceQuantize", "LceBconv2d", "LceBconv2d"]


@pytest.mark.parametrize(
    ("kind", "slope"),
    [("LEAKY_RELU", 0.0), ("PRELU", -0.5), ("HARD_SWISH", 0), ("LOGISTIC", 0), ("MINIMUM", 0.0), ("MAXIMUM", 1.0)],
)
def test_what_does_not_stays(kind: str, slope: float) -> None:
    assert kind in between_layers(kind, slope)
