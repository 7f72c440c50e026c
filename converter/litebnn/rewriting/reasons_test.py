import numpy as np

from litebnn.rewriting.reasons import NO_SIGN, why_no_sign
from tests.support.float_models import FloatModel


def test_the_quantizer_is_named() -> None:
    model = FloatModel()
    x = model.input(1, 4, 4, 32)
    levels = model.elementwise("MUL", model.op("ROUND", [x], x.dims), model.const(1 / 3))
    heaviside = model.elementwise("SIGN", model.elementwise("RELU", x))
    flag = model.op("CAST", [model.elementwise("LESS", x, model.const(0), type="BOOL")], x.dims)
    for tensor, reason in (
        (levels, "DoReFa"),
        (heaviside, "heaviside"),
        (model.pad(model.elementwise("SIGN", x), [(1, 1), (1, 1)]), "ternary"),
        (flag, "two values"),
        (model.elementwise("RELU", x), NO_SIGN),
        (x, NO_SIGN),
        (model.const(np.ones(3)), NO_SIGN),
    ):
        assert reason in why_no_sign(model.graph, tensor)
