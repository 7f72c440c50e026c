"""Quantizers with few levels, as exporters write them and as people write them by hand."""

from __future__ import annotations

from collections.abc import Callable

from litebnn.graph import Tensor
from tests.support.float_models import FloatModel


def rounded(model: FloatModel, clipped: Tensor, scale: float = 3.0) -> Tensor:
    """Rounds x to a multiple of 1 / scale."""
    return model.elementwise("ROUND", model.elementwise("MUL", clipped, model.const(scale)))


def dorefa(model: FloatModel, x: Tensor) -> Tensor:
    """Appends Larq's DoReFa quantizer with 2 bits. TensorFlow's converter folds its division by 3 into the weights of
    the next layer."""
    return rounded(model, model.elementwise("RELU", model.elementwise("MINIMUM", x, model.const(1))))


def divided(model: FloatModel, x: Tensor) -> Tensor:
    clipped = model.elementwise("MAXIMUM", model.const(0), model.elementwise("MINIMUM", x, model.const(1)))
    return model.elementwise("DIV", rounded(model, clipped), model.const(4))


def floored(model: FloatModel, x: Tensor) -> Tensor:
    scaled = model.elementwise("MUL", model.elementwise("RELU_0_TO_1", x), model.const(3))
    return model.elementwise("FLOOR", model.elementwise("ADD", scaled, model.const(0.5)))


def of_relu6(model: FloatModel, x: Tensor) -> Tensor:
    return rounded(model, model.elementwise("RELU6", x), 0.5)


def fused_relu6(model: FloatModel, x: Tensor) -> Tensor:
    """Appends a quantizer with steps of 0.5, whose clip is the fused activation of an addition."""
    clipped = model.elementwise("ADD", x, model.const(1), activation="relu6")
    return model.elementwise("MUL", rounded(model, clipped, 0.5), model.const(0.5))


def straight_through(model: FloatModel, x: Tensor) -> Tensor:
    return model.elementwise("ADD", model.elementwise("SUB", dorefa(model, x), x), x)


def falling(model: FloatModel, x: Tensor) -> Tensor:
    return model.elementwise("SUB", model.const(3), dorefa(model, x))


def ternary(model: FloatModel, x: Tensor) -> Tensor:
    """Appends the ternary quantizer SteTern of Larq."""
    above, below = (model.elementwise("SIGN", model.elementwise("ADD", x, model.const(t))) for t in (-0.5, 0.5))
    return model.elementwise("SIGN", model.elementwise("ADD", below, above))


def ternary_rounded(model: FloatModel, x: Tensor) -> Tensor:
    return model.elementwise("ROUND", model.elementwise("RELU_N1_TO_1", x))


def ternary_selected(model: FloatModel, x: Tensor) -> Tensor:
    low = model.elementwise("LESS", x, model.const(-0.5), type="BOOL")
    high = model.elementwise("GREATER", x, model.const(1), type="BOOL")
    other = model.op("SELECT_V2", [low, model.const(-1), model.const(0)], x.dims)
    return model.op("SELECT_V2", [high, model.const(1), other], x.dims)


def booleans(model: FloatModel, x: Tensor) -> Tensor:
    """Appends the number of thresholds that x reaches, from 0 to 3."""
    conditions = [model.elementwise("GREATER_EQUAL", x, model.const(t), type="BOOL") for t in (-0.25, 0, 1.5)]
    first, second, third = (model.op("CAST", [condition], x.dims) for condition in conditions)
    return model.elementwise("ADD", model.elementwise("ADD", first, second), third)


LEVELS: dict[str, Callable[[FloatModel, Tensor], Tensor]] = {
    one.__name__: one
    for one in (
        *(dorefa, divided, floored, of_relu6, fused_relu6, straight_through, falling),
        *(ternary, ternary_rounded, ternary_selected, booleans),
    )
}
