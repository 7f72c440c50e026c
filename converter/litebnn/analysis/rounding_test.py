"""Tests the steps that are found in random compositions of roundings, clamps, casts and lines, against NumPy."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import litebnn
from litebnn.analysis.affine import next_level
from litebnn.analysis.values import values_of
from litebnn.graph import Array, Tensor
from tests.support.float_models import FloatModel
from tests.support.level_spellings import LINES, RANGES, ROUNDINGS, Both, between, clamp, line, rounding

F = np.float32
# Ties, limits of clamps, their neighbours, and numbers that no rounding should meet.
_TIES = np.arange(-64, 65, dtype=F) / F(16)
_FAR = np.concatenate([np.linspace(-64, 64, 1025, dtype=F), F([-1e30, -1e5, 1e5, 1e30])])
SAMPLES = np.concatenate([_TIES, next_level(_TIES, up=True), next_level(_TIES, up=False), _FAR])


def known_at(model: FloatModel, tensor: Tensor, x: Tensor, numbers: Array) -> Array | None:
    """Returns the values of a tensor for these x, according to `values_of`; None if it does not know them."""
    found = values_of(model.graph, tensor)
    if not found.is_known or found.x not in (x, None):
        return None
    values: Array = found.values[np.searchsorted(found.edges, numbers, side="right")]
    return values


@settings(max_examples=60)
@given(st.data())
def test_a_clamp_of_at_most_four_integers_is_a_step_function(data: st.DataObject) -> None:
    """Whichever comes first, rounding or clamping, and whatever lines are around them."""
    model = FloatModel()
    x = model.input(1, 4)
    now: Both = x, SAMPLES
    low, size, form = data.draw(RANGES)
    parts = [(rounding, (data.draw(ROUNDINGS),)), (clamp, (low, low + size, form))]
    for numbers in data.draw(st.lists(LINES, max_size=2)):
        now = line(model, now, *numbers)
    for part, numbers in data.draw(st.permutations(parts)):
        now = part(model, now, *numbers)
    for numbers in data.draw(st.lists(LINES, max_size=2)):
        now = line(model, now, *numbers)
    found = known_at(model, now[0], x, SAMPLES)
    if found is None:  # a clamp to thirds, as of FLOOR_DIV by 0.37, has more levels
        assert np.unique(now[1]).size > 4
    else:
        np.testing.assert_allclose(found, now[1], rtol=1e-6, atol=1e-5)


@given(st.data())
def test_what_is_known_of_random_compositions_is_true(data: st.DataObject) -> None:
    model = FloatModel()
    x = model.input(1, 4)
    now: Both = x, SAMPLES
    for kind in data.draw(st.lists(st.sampled_from(["line", "rounding", "clamp"]), min_size=1, max_size=6)):
        if kind == "line":
            now = line(model, now, *data.draw(LINES))
        elif kind == "rounding":
            now = rounding(model, now, data.draw(ROUNDINGS))
        else:
            low, size, form = data.draw(RANGES)
            now = clamp(model, now, low, low + size, form)
    with np.errstate(all="ignore"):
        found = known_at(model, now[0], x, SAMPLES)
    if found is not None:
        np.testing.assert_allclose(found, now[1], rtol=1e-6, atol=1e-5)


@pytest.mark.parametrize("kind", ["ROUND", "FLOOR", "CEIL", "TRUNC", "CAST", "FLOOR_DIV"])
@pytest.mark.parametrize("step", [0.37, 1 / 3, 0.1])
@pytest.mark.parametrize("clamps_first", [False, True])
def test_the_runtime_steps_at_the_same_numbers(kind: str, step: float, clamps_first: bool) -> None:
    model = FloatModel()
    x = model.input(1, 64)
    scaled = model.elementwise("DIV", x, model.const(step))
    clamped = between(model, scaled, -1, 2, "MAXIMUM") if clamps_first else scaled
    rounded, _ = rounding(model, (clamped, np.zeros(0)), kind)
    levels = model.elementwise("MUL", between(model, rounded, -1, 2, "MAXIMUM"), model.const(step))
    found = values_of(model.graph, levels)
    edges, each = found.edges, np.abs(found.edges[:1])
    near = np.concatenate([edges, next_level(edges, up=True), next_level(edges, up=False), each * F(100), each * F(-9)])
    sample = np.pad(near, (0, 64 - near.size))
    actual = litebnn.Interpreter(model.finish(levels)).predict(sample[None])[0]
    np.testing.assert_array_equal(actual, found.values[np.searchsorted(edges, sample, side="right")].astype(F))


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
