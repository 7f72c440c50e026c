import numpy as np
import pytest

import litebnn
from litebnn.contract import Activation
from litebnn.rules.build.bconv import bconv_options, multiplier_and_bias
from tests.support.float_models import FloatModel, binarized, op_names, sign_weights

RNG = np.random.default_rng(0)


def fused_model(*steps: str) -> tuple[list[str], FloatModel]:
    model = FloatModel()
    x = model.conv(model.sign(model.input(1, 6, 6, 32)), sign_weights(RNG, 8, 3, 3, 32, alpha=False))
    for step in steps:
        if step in ("MUL", "ADD", "SUB", "DIV"):
            x = model.elementwise(step, x, model.const(RNG.choice([0.5, 2.0], 8)))
        elif step == "RSUB":
            x = model.elementwise("SUB", model.const(RNG.choice([0.5, 2.0], 8)), x)
        else:
            x = model.elementwise(step, x)
    built, _ = binarized(model, x)
    model.graph = built.graphs[0]
    return op_names(built), model


@pytest.mark.parametrize(
    "steps",
    [
        ("MUL",), ("ADD", "MUL", "SUB", "DIV"), ("RSUB", "MUL"), ("NEG", "ADD"), ("RELU", "MUL", "ADD"),
        ("RELU6", "MUL"), ("RELU_N1_TO_1", "ADD"), ("MUL", "RELU", "ADD"), ("RELU", "RELU6", "MUL"), ("NEG", "RELU"),
    ],
)  # fmt: skip
def test_exact_orders_are_fused(steps: tuple[str, ...]) -> None:
    assert fused_model(*steps)[0] == ["LceQuantize", "LceBconv2d"]


@pytest.mark.parametrize("steps", [("ADD", "RELU"), ("MUL", "RELU6"), ("RELU", "ADD", "RELU6")])
def test_other_orders_keep_their_activation(steps: tuple[str, ...]) -> None:
    assert fused_model(*steps)[0] == ["LceQuantize", "LceBconv2d", steps[-1]]


def test_an_activation_that_never_binds_goes() -> None:
    model = FloatModel()
    x = model.conv(model.sign(model.input(1, 6, 6, 32)), sign_weights(RNG, 8, 1, 1, 32, alpha=False), np.full(8, 40.0))
    built, _ = binarized(model, model.elementwise("RELU", x))
    assert op_names(built) == ["LceQuantize", "LceBconv2d"]
    assert bconv_options(built.graphs[0].ops[-1]).fused_activation_function == Activation.NONE


def test_what_others_see_is_not_fused() -> None:
    model = FloatModel()
    x = model.conv(model.sign(model.input(1, 6, 6, 32)), sign_weights(RNG, 8, 3, 3, 32))
    built, _ = binarized(model, model.elementwise("RELU", x), x)
    assert op_names(built)[-1] == "RELU"


def test_a_constant_for_each_position_is_not_fused() -> None:
    model = FloatModel()
    x = model.conv(model.sign(model.input(1, 6, 6, 32)), sign_weights(RNG, 8, 3, 3, 32))
    built, _ = binarized(model, model.elementwise("ADD", x, model.const(np.ones((1, 4, 4, 8)))))
    assert op_names(built)[-1] == "ADD"


def test_a_product_that_overflows_is_not_fused() -> None:
    model = FloatModel()
    x = model.conv(model.sign(model.input(1, 6, 6, 32)), sign_weights(RNG, 8, 3, 3, 32))
    for _ in range(3):
        x = model.elementwise("MUL", x, model.const(np.full(8, 1e30)))
    built, _ = binarized(model, x)
    assert op_names(built)[-1] == "MUL"
    assert np.all(np.isfinite(multiplier_and_bias(built.graphs[0].ops[1])))


def test_a_strict_threshold_is_not_lost_in_a_sum_with_the_bias() -> None:
    """The threshold is the next float above 3.375. If the bias were subtracted from this threshold and from 3.375, both
    differences would be rounded to the same float."""
    weights, ties = sign_weights(RNG, 32, 1, 1, 32, alpha=False), np.ones((1, 8, 8, 32), np.float32)
    ties[...] = weights[0, 0, 0]
    dots = (ties @ weights.reshape(32, 32).T).astype(np.float32)
    model = FloatModel()
    x = model.conv(model.sign(model.input(1, 8, 8, 32)), weights)
    x = model.elementwise("ADD", x, model.const(3.375 - dots[0, 0, 0]))
    source = model.finish(model.conv(model.sign(x, "where_gt", 3.375), sign_weights(RNG, 8, 1, 1, 32)))
    expected, actual = (litebnn.Interpreter(each).predict(ties) for each in (source, litebnn.convert_tflite(source)))
    np.testing.assert_array_equal(actual, expected)
