"""Tests the steps that are found in random compositions of roundings, clamps, casts and lines, against NumPy."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from litebnn.analysis.affine import next_level
from litebnn.analysis.values import values_of
from litebnn.graph import Array, Tensor
from tests.support.float_models import FloatModel
from tests.support.level_spellings import between

F = np.float32
# Ties, limits of clamps, their neighbours, and numbers that no rounding should meet.
_TIES = np.arange(-64, 65, dtype=F) / F(16)
SAMPLES = np.concatenate([_TIES, next_level(_TIES, up=True), next_level(_TIES, up=False), F([-1e30, -1e5, 1e5, 1e30])])

Piece = Callable[[FloatModel, Tensor], Tensor]
Both = tuple[Tensor, Array]


def known_at(model: FloatModel, tensor: Tensor, x: Tensor, numbers: Array) -> Array | None:
    """Returns the values of a tensor for these x, according to `values_of`; None if it does not know them."""
    found = values_of(model.graph, tensor)
    if not found.is_known or found.x not in (x, None):
        return None
    values: Array = found.values[np.searchsorted(found.edges, numbers, side="right")]
    return values


def _line(model: FloatModel, now: Both, name: str, number: float) -> Both:
    tensor = model.elementwise(name, now[0], model.const(number))
    computed = {"ADD": np.add, "SUB": np.subtract, "MUL": np.multiply, "DIV": np.divide}[name](now[1], F(number))
    return tensor, computed.astype(F)


def _rounding(model: FloatModel, now: Both, name: str) -> Both:
    tensor, values = now
    if name == "TRUNC":
        negative = model.elementwise("LESS", tensor, model.const(0), type="BOOL")
        parts = [model.elementwise(kind, tensor) for kind in ("CEIL", "FLOOR")]
        return model.op("SELECT", [negative, *parts], tensor.dims), np.trunc(values)
    if name == "CAST":
        number = model.op("CAST", [tensor], tensor.dims, type="INT32")
        return model.op("CAST", [number], tensor.dims), np.trunc(np.clip(values, -(2.0**31), 2.0**31)).astype(F)
    if name == "FLOOR_DIV":
        return model.elementwise(name, tensor, model.const(0.37)), np.floor(values / F(0.37))
    return model.elementwise(name, tensor), {"ROUND": np.rint, "FLOOR": np.floor, "CEIL": np.ceil}[name](values)


def _clamp(model: FloatModel, now: Both, low: float, high: float, form: str) -> Both:
    return between(model, now[0], low, high, form), np.clip(now[1], F(low), F(high))


LINES = st.tuples(
    st.sampled_from(["ADD", "SUB", "MUL", "DIV"]), st.sampled_from([0.25, 0.5, 1.0, 1.5, 2.0, -1.0, 0.37, 1 / 3, 2.7])
)
ROUNDINGS = st.sampled_from(["ROUND", "FLOOR", "CEIL", "TRUNC", "CAST", "FLOOR_DIV"])
RANGES = st.tuples(st.integers(-2, 1), st.integers(1, 3), st.sampled_from(["MAXIMUM", "SELECT"]))


@settings(max_examples=60)
@given(st.data())
def test_a_clamp_of_at_most_four_integers_is_a_step_function(data: st.DataObject) -> None:
    """Whichever comes first, rounding or clamping, and whatever lines are around them."""
    model = FloatModel()
    x = model.input(1, 4)
    now: Both = x, SAMPLES
    rounding = partial_of(_rounding, data.draw(ROUNDINGS))
    low, size, form = data.draw(RANGES)
    clamp = partial_of(_clamp, low, low + size, form)
    for line in data.draw(st.lists(LINES, max_size=2)):
        now = _line(model, now, *line)
    for part in (rounding, clamp) if data.draw(st.booleans()) else (clamp, rounding):
        now = part(model, now)
    for line in data.draw(st.lists(LINES, max_size=2)):
        now = _line(model, now, *line)
    found = known_at(model, now[0], x, SAMPLES)
    if found is None:  # a clamp to thirds, as of FLOOR_DIV by 0.37, has more levels
        assert np.unique(now[1]).size > 4
    else:
        np.testing.assert_allclose(found, now[1], rtol=1e-6)


def partial_of(part: Callable[..., Both], *arguments: object) -> Callable[[FloatModel, Both], Both]:
    return lambda model, now: part(model, now, *arguments)


@given(st.data())
def test_what_is_known_of_random_compositions_is_true(data: st.DataObject) -> None:
    model = FloatModel()
    x = model.input(1, 4)
    now: Both = x, SAMPLES
    for kind in data.draw(st.lists(st.sampled_from(["line", "rounding", "clamp"]), min_size=1, max_size=6)):
        if kind == "line":
            now = _line(model, now, *data.draw(LINES))
        elif kind == "rounding":
            now = _rounding(model, now, data.draw(ROUNDINGS))
        else:
            low, size, form = data.draw(RANGES)
            now = _clamp(model, now, low, low + size, form)
    with np.errstate(all="ignore"):
        found = known_at(model, now[0], x, SAMPLES)
    if found is not None:
        np.testing.assert_allclose(found, now[1], rtol=1e-6)


@pytest.mark.parametrize(("activation", "values"), [("relu", [0, 1]), ("relu6", [0, 1]), ("relu1", [-1, 0, 1])])
@pytest.mark.parametrize("layer", ["conv", "dense", "sum", "batch norm", "pool", "reshape", "concatenation"])
def test_an_activation_that_is_fused_into_a_layer_bounds_a_rounding(
    layer: str, activation: str, values: list[int]
) -> None:
    model = FloatModel()
    x = model.input(1, 4, 4, 8) if layer != "dense" else model.input(1, 8)
    if layer == "dense":
        x = model.dense(x, np.ones((8, 8)), activation=activation)
    elif layer in ("sum", "batch norm"):
        other = model.input(*x.dims) if layer == "sum" else model.const(np.arange(8))
        x = model.elementwise("ADD", x, other, activation=activation)
    else:
        x = model.conv(x, np.ones((8, 1, 1, 8)), activation=activation)
    if layer == "pool":
        x = model.max_pool(x, 2, 2)
    elif layer == "reshape":
        x = model.reshape(x, 1, 128)
    elif layer == "concatenation":
        x = model.concatenated(x, x)
    scaled = model.elementwise("MUL", model.elementwise("MINIMUM", x, model.const(0.7)), model.const(1 / 0.7))
    found = values_of(model.graph, model.elementwise("ROUND", scaled))
    assert (found.x, found.values.tolist()) == (x, values)


def test_without_an_activation_a_rounding_takes_any_number_of_values() -> None:
    model = FloatModel()
    x = model.conv(model.input(1, 4, 4, 8), np.ones((8, 1, 1, 8)))
    joined = model.concatenated(x, model.elementwise("RELU", x))
    for tensor in (x, joined):
        assert not values_of(model.graph, model.elementwise("ROUND", tensor)).is_known


@pytest.mark.parametrize(("kind", "is_known"), [("INT8", False), ("INT16", False), ("INT32", True), ("INT64", True)])
def test_a_cast_to_integers_that_are_too_small_is_unknown(kind: str, is_known: bool) -> None:
    """200 as INT8 is -56 on some CPUs, and 127 on others."""
    model = FloatModel()
    x = model.input(1, 4)
    for source, known in ((x, is_known), (between(model, x, -1, 2, "MAXIMUM"), True)):
        number = model.op("CAST", [source], x.dims, type=kind)
        clamped = between(model, model.op("CAST", [number], x.dims), 0, 1, "MAXIMUM")
        assert values_of(model.graph, clamped).is_known == known
