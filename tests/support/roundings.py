"""Appends roundings, clamps and lines to a model, and computes with NumPy what they should give."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from litebnn.graph import Array, Tensor
from tests.support.float_models import FloatModel
from tests.support.level_spellings import between

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
