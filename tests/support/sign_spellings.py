"""Signs as users write them by hand. Each function adds ops to a model that give ±1."""

from collections.abc import Callable

import numpy as np

from litebnn.graph import Tensor
from tests.support.float_models import FloatModel

Spelling = Callable[[FloatModel, Tensor], Tensor]


def as_number(model: FloatModel, condition: Tensor) -> Tensor:
    return model.op("CAST", [condition], condition.dims)


def compared(model: FloatModel, x: Tensor, comparison: str, level: float = 0.0) -> Tensor:
    return model.elementwise(comparison, x, model.const(level), type="BOOL")


def two_booleans(model: FloatModel, x: Tensor) -> Tensor:
    above, below = (as_number(model, compared(model, x, name)) for name in ("GREATER_EQUAL", "LESS"))
    return model.elementwise("SUB", above, below)


def heaviside(model: FloatModel, x: Tensor) -> Tensor:
    isnan = model.elementwise("NOT_EQUAL", x, x, type="BOOL")
    zero = model.elementwise("LOGICAL_OR", compared(model, x, "LESS"), isnan, type="BOOL")
    step = model.op("SELECT_V2", [zero, model.const(0, np.int32), model.const(1, np.int32)], x.dims, type="INT32")
    number = model.op("CAST", [step], x.dims)
    picked = model.op("SELECT_V2", [compared(model, x, "EQUAL"), model.const(1), number], x.dims)
    return model.elementwise("SUB", model.elementwise("MUL", picked, model.const(2)), model.const(1))


def one_minus_magnitude(model: FloatModel, x: Tensor) -> Tensor:
    sign = model.elementwise("SIGN", x)
    return model.elementwise("ADD", sign, model.elementwise("SUB", model.const(1), model.elementwise("ABS", sign)))


def zeros_replaced(model: FloatModel, x: Tensor) -> Tensor:
    return model.elementwise("SIGN", model.op("SELECT_V2", [compared(model, x, "EQUAL"), model.const(1), x], x.dims))


def detached(model: FloatModel, x: Tensor) -> Tensor:
    clip, sign = model.elementwise("RELU_N1_TO_1", x), two_booleans(model, x)
    return model.elementwise("ADD", model.elementwise("SUB", sign, clip), clip)


def added_to_itself(model: FloatModel, x: Tensor) -> Tensor:
    return model.elementwise("ADD", x, model.elementwise("ADD", model.elementwise("NEG", x), two_booleans(model, x)))


def masked(model: FloatModel, x: Tensor) -> Tensor:
    """Appends a sign from which a parabola is subtracted, and to which it is added again. The parabola is x * x below
    1, and 0 from 1 on.
    """
    parabola = model.elementwise("MUL", model.elementwise("MUL", x, x), as_number(model, compared(model, x, "LESS", 1)))
    return model.elementwise("ADD", model.elementwise("SUB", two_booleans(model, x), parabola), parabola)


def rounded(model: FloatModel, x: Tensor) -> Tensor:
    """Appends a sign with a threshold 1.2e-7 above zero.

    Random graphs do not use this form, because float sums near its threshold are not exact.
    """
    half = model.elementwise("MUL", model.elementwise("ADD", x, model.const(1)), model.const(0.5))
    clipped = model.elementwise("MINIMUM", model.elementwise("RELU", half), model.const(1))
    twice = model.elementwise("MUL", model.elementwise("ROUND", clipped), model.const(2))
    return model.elementwise("SUB", twice, model.const(1))


SPELLINGS: dict[str, Spelling] = {
    "two_booleans": two_booleans,
    "heaviside": heaviside,
    "one_minus_magnitude": one_minus_magnitude,
    "zeros_replaced": zeros_replaced,
    "detached": detached,
    "added_to_itself": added_to_itself,
    "masked": masked,
}
