"""Quantizers with few levels, as exporters write them and as people write them by hand, and parts of quantizers with
what NumPy computes for them."""

from collections.abc import Callable

import numpy as np
from hypothesis import strategies as st

from litebnn.graph import Array, Tensor
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


def between(model: FloatModel, x: Tensor, low: float, high: float, form: str = "RELU") -> Tensor:
    """Limits x to a range by RELU and MINIMUM, by MAXIMUM and MINIMUM, or by two selects."""
    if form == "SELECT":
        above = model.elementwise("GREATER", x, model.const(high), type="BOOL")
        x = model.op("SELECT_V2", [above, model.const(high), x], x.dims)
        below = model.elementwise("LESS", x, model.const(low), type="BOOL")
        return model.op("SELECT_V2", [below, model.const(low), x], x.dims)
    x = model.elementwise("RELU", x) if form == "RELU" else model.elementwise("MAXIMUM", x, model.const(low))
    return model.elementwise("MINIMUM", x, model.const(high))


def clamped_last(model: FloatModel, x: Tensor, most: int = 3) -> Tensor:
    """Appends the quantizer of LSQ and BiT, which rounds before it clamps."""
    return model.elementwise("MUL", between(model, rounded(model, x, 4), 0, most), model.const(0.25))


def clamped_last_by_selects(model: FloatModel, x: Tensor, most: int = 3) -> Tensor:
    """Appends the quantizer of Brevitas."""
    return model.elementwise("MUL", between(model, rounded(model, x, 2), 0, most, "SELECT"), model.const(0.5))


def straight_through_clamped_last(model: FloatModel, x: Tensor) -> Tensor:
    scaled = model.elementwise("MUL", x, model.const(2))
    clamped = between(model, model.elementwise("ROUND", scaled), 0, 3, "MAXIMUM")
    return model.elementwise("ADD", model.elementwise("SUB", clamped, scaled), scaled)


def ternary_clamped_last(model: FloatModel, x: Tensor) -> Tensor:
    ceiled = model.elementwise("CEIL", model.elementwise("SUB", x, model.const(0.5)))
    return model.elementwise("RELU_N1_TO_1", ceiled)


def truncated(model: FloatModel, x: Tensor, most: int = 3) -> Tensor:
    """Appends torch.trunc as PyTorch's exporter writes it, and a clamp."""
    negative = model.elementwise("LESS", x, model.const(0), type="BOOL")
    parts = [model.elementwise(name, x) for name in ("CEIL", "FLOOR")]
    return between(model, model.op("SELECT", [negative, *parts], x.dims), 0, most)


def cast_to_integers(model: FloatModel, x: Tensor, most: int = 3) -> Tensor:
    number = model.op("CAST", [model.elementwise("MUL", x, model.const(2))], x.dims, type="INT32")
    for name, limit in (("MAXIMUM", 0), ("MINIMUM", most)):
        number = model.elementwise(name, number, model.const(limit, np.int32), type="INT32")
    return model.op("CAST", [number], x.dims)


def floor_divided(model: FloatModel, x: Tensor) -> Tensor:
    return between(model, model.elementwise("FLOOR_DIV", x, model.const(0.5)), 0, 3)


def ternary_of_magnitudes(model: FloatModel, x: Tensor) -> Tensor:
    """Appends sign(x) * (|x| > 0.5), as of ternary weight networks."""
    large = model.elementwise("GREATER", model.elementwise("ABS", x), model.const(0.5), type="BOOL")
    return model.elementwise("MUL", model.elementwise("SIGN", x), model.op("CAST", [large], x.dims))


def ternary_of_signs_and_magnitudes(model: FloatModel, x: Tensor) -> Tensor:
    """Appends the ternary quantizer of Brevitas, whose sign takes two values."""
    large = model.elementwise("GREATER_EQUAL", model.elementwise("ABS", x), model.const(0.5), type="BOOL")
    mask = model.op("CAST", [large], x.dims)
    return model.elementwise("MUL", model.elementwise("MUL", mask, model.sign(x, "where_ge")), model.const(0.75))


LEVELS: dict[str, Callable[[FloatModel, Tensor], Tensor]] = {
    one.__name__: one
    for one in (
        *(dorefa, divided, floored, of_relu6, fused_relu6, straight_through, falling),
        *(clamped_last, clamped_last_by_selects, straight_through_clamped_last, truncated, cast_to_integers),
        *(floor_divided, ternary, ternary_rounded, ternary_selected, ternary_clamped_last, ternary_of_magnitudes),
        *(ternary_of_signs_and_magnitudes, booleans),
    )
}

F = np.float32
# A tensor of a model, and the values that it has for some inputs.
Both = tuple[Tensor, Array]


def line(model: FloatModel, now: Both, name: str, number: float) -> Both:
    tensor = model.elementwise(name, now[0], model.const(number))
    computed = {"ADD": np.add, "SUB": np.subtract, "MUL": np.multiply, "DIV": np.divide}[name](now[1], F(number))
    return tensor, computed.astype(F)


def rounding(model: FloatModel, now: Both, name: str) -> Both:
    tensor, values = now
    if name == "TRUNC":
        negative = model.elementwise("LESS", tensor, model.const(0), type="BOOL")
        parts = [model.elementwise(kind, tensor) for kind in ("CEIL", "FLOOR")]
        return model.op("SELECT", [negative, *parts], tensor.dims), np.trunc(values)
    if name == "CAST":
        number = model.op("CAST", [tensor], tensor.dims, type="INT32")
        return model.op("CAST", [number], tensor.dims), np.trunc(np.clip(values, -(2.0**31), 2.0**31)).astype(F)
    if name == "FLOOR_DIV":
        return model.elementwise(name, tensor, model.const(0.37)), np.floor(values / float(F(0.37))).astype(F)
    return model.elementwise(name, tensor), {"ROUND": np.rint, "FLOOR": np.floor, "CEIL": np.ceil}[name](values)


def clamp(model: FloatModel, now: Both, low: float, high: float, form: str) -> Both:
    return between(model, now[0], low, high, form), np.clip(now[1], F(low), F(high))


LINES = st.tuples(
    st.sampled_from(["ADD", "SUB", "MUL", "DIV"]), st.sampled_from([0.25, 0.5, 1.0, 1.5, 2.0, -1.0, 0.37, 1 / 3, 2.7])
)
ROUNDINGS = st.sampled_from(["ROUND", "FLOOR", "CEIL", "TRUNC", "CAST", "FLOOR_DIV"])
RANGES = st.tuples(st.integers(-2, 1), st.integers(1, 3), st.sampled_from(["MAXIMUM", "SELECT"]))
