import numpy as np
import pytest

from litebnn.rules.build.notes import Notes
from litebnn.rules.fuse.compute_before_moving import compute_before_moving
from litebnn.rules.phases import run_phases
from tests.support.float_models import FloatModel, binarized, op_names, run_pass, sign_weights

RNG = np.random.default_rng(0)


def pooled(bias: float, *, fused: bool, activation: str = "RELU") -> tuple[list[str], list[tuple[int, ...]]]:
    model = FloatModel()
    weights = sign_weights(RNG, 8, 3, 3, 32, alpha=False)
    x = model.conv(model.sign(model.input(1, 8, 8, 32)), weights, np.full(8, bias))
    x = model.max_pool(x, 2, 2, activation=activation.lower() if fused else "none")
    built, _ = binarized(model, x if fused else model.elementwise(activation, x))
    return op_names(built), [op.output.dims for op in built.graphs[0].ops]


@pytest.mark.parametrize("fused", [True, False])
def test_a_clamp_that_the_op_can_fuse_moves(fused: bool) -> None:
    names, dims = pooled(0.0, fused=fused)
    assert names == ["LceQuantize", "LceBconv2d", "MAX_POOL_2D"]
    assert dims[1:] == [(1, 6, 6, 8), (1, 3, 3, 8)]


def test_what_stands_after_the_clamp_is_told_of_the_change() -> None:
    model = FloatModel()
    x = model.conv(model.sign(model.input(1, 8, 8, 32)), sign_weights(RNG, 8, 3, 3, 32, alpha=False))
    pool = model.max_pool(x, 2, 2)
    built = model.model(model.elementwise("RELU", pool))
    run_phases(built, ("thresholds", "binarize"), Notes(built))
    assert run_pass(compute_before_moving, built) == (
        True,
        ["LceQuantize", "LceBconv2d", "RELU", "MAX_POOL_2D"],
    )


def test_another_stays_where_it_is() -> None:
    assert pooled(1.0, fused=True)[0] == ["LceQuantize", "LceBconv2d", "MAX_POOL_2D"]
    assert pooled(1.0, fused=False)[0] == ["LceQuantize", "LceBconv2d", "MAX_POOL_2D", "RELU"]
