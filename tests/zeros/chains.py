"""Chains of float ops as they occur in front of a sign: activations, pads, pools, scales, and joins of two chains."""

from collections.abc import Callable

import numpy as np
from hypothesis import strategies as st

from litebnn.contract import Padding
from litebnn.graph import Tensor
from tests.support.float_models import FloatModel

Link = Callable[[FloatModel, Tensor], Tensor]
RING = [(1, 1), (1, 1)]


def _with(name: str, value: float, activation: str = "none") -> Link:
    return lambda m, x: m.elementwise(name, x, m.const(value), activation=activation)


def _of_number(name: str, value: float) -> Link:
    return lambda m, x: m.elementwise(name, m.const(value), x)


def _for_channels(name: str, *values: float) -> Link:
    return lambda m, x: m.elementwise(name, x, m.const(np.resize(values, x.channels)))


def _average(model: FloatModel, x: Tensor, same: bool) -> Tensor:
    sizes = x.dims[1:3] if same else [size - 1 for size in x.dims[1:3]]
    padding = Padding.SAME if same else Padding.VALID
    options = {"stride_h": 1, "stride_w": 1, "filter_height": 2, "filter_width": 2, "fused_activation_function": 0}
    return model.op("AVERAGE_POOL_2D", [x], (x.dims[0], *sizes, x.channels), padding=padding, **options)


def _resized(name: str) -> Link:
    def resized(model: FloatModel, x: Tensor) -> Tensor:
        sizes = [2 * size for size in x.dims[1:3]]
        options = {"align_corners": False, "half_pixel_centers": True}
        return model.op(name, [x, model.const(sizes, np.int32)], (x.dims[0], *sizes, x.channels), **options)

    return resized


def _padded_max(model: FloatModel, x: Tensor) -> Tensor:
    return model.max_pool(model.pad(x, RING, -np.inf), 3, 2)


ACTIVATIONS: dict[str, Link] = {
    **{name: lambda m, x, name=name: m.elementwise(name, x) for name in ("RELU", "RELU6", "ABS", "TANH", "NEG", "ELU")},
    **{name: lambda m, x, name=name: m.elementwise(name, x) for name in ("SQUARE", "RELU_N1_TO_1", "RELU_0_TO_1")},
    "LEAKY_RELU": lambda m, x: m.op("LEAKY_RELU", [x], x.dims, alpha=0.25),
    "HARD_SWISH": lambda m, x: m.elementwise("HARD_SWISH", x),
    "at most 0": _with("MINIMUM", 0),
    "at least 0.5": _with("MAXIMUM", 0.5),
}
POOLS: dict[str, Link] = {
    "max": lambda m, x: m.max_pool(x, 2, 1),
    "padded max": _padded_max,
    "mean": lambda m, x: _average(m, x, same=False),
    "mean of SAME": lambda m, x: _average(m, x, same=True),
    "nearest": _resized("RESIZE_NEAREST_NEIGHBOR"),
    "bilinear": _resized("RESIZE_BILINEAR"),
}
PADS: dict[str, Link] = {
    "zeros": lambda m, x: m.pad(x, RING),
    "zeros before": lambda m, x: m.pad(x, [(2, 0), (0, 0)]),
    "ones": lambda m, x: m.pad(x, RING, 1),
    "minus ones": lambda m, x: m.pad(x, RING, -1),
}
SCALES: dict[str, Link] = {
    "doubled": _with("MUL", 2),
    "opposite": _with("MUL", -0.5),
    "divided": _with("DIV", 4),
    "of channels": _for_channels("MUL", 0.5, 1, 4),
}
SHIFTS: dict[str, Link] = {
    "raised": _with("ADD", 0.25),
    "lowered": _with("SUB", 1),
    "from one": _of_number("SUB", 1),
    "by channels": _for_channels("ADD", 0, 0.5, -1),
    "clamped sum": _with("ADD", 0.5, "relu6"),
}
CHAIN = {**ACTIVATIONS, **POOLS, **PADS, **SCALES}
JOINS = ("ADD", "SUB", "MUL", "MAXIMUM", "MINIMUM")


def chains(*links: str, longest: int = 5) -> st.SearchStrategy[list[str]]:
    return st.lists(st.sampled_from(links), min_size=1, max_size=longest)


def chained(model: FloatModel, x: Tensor, names: list[str]) -> Tensor:
    for name in names:
        x = {**CHAIN, **SHIFTS}[name](model, x)
    return x
