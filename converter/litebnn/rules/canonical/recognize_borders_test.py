from collections.abc import Callable, Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import litebnn
from litebnn.flatbuffer import read_model
from litebnn.graph import Tensor
from litebnn.rules.canonical.recognize_borders import recognize_borders
from litebnn.rules.canonical.remove_dead_ops import remove_dead_ops
from tests.support.float_models import (
    FloatModel,
    assert_same_values,
    dyadic,
    op_names,
    rewritten,
    run_pass,
    sign_weights,
)

Amounts = Sequence[tuple[int, int]]


def zeros_around(model: FloatModel, x: Tensor, amounts: Amounts) -> Tensor:
    dims = [size + sum(around) for size, around in zip(x.dims, amounts, strict=True)]
    return model.op("PAD", [x, model.const(amounts, np.int32)], dims)


def circular(model: FloatModel, x: Tensor, amounts: Amounts) -> Tensor:
    """Pads each axis by (before, after) elements of the opposite end, by pads, slices and selects with masks."""
    inside = x.dims
    for axis, around in enumerate(amounts):
        if any(around):
            x = zeros_around(model, x, _only(amounts, axis, around))
            rows = np.arange(x.dims[axis]) - around[0]
            mask = _mask(x, axis, (rows < 0) | (rows >= inside[axis]))
            x = model.op("SELECT_V2", [mask, model.const(0), x], x.dims)
    for axis in reversed(range(len(amounts))):
        for side, count in enumerate(amounts[axis]):
            if count:
                x = _wrapped(model, x, amounts, axis, side)
    return x


def _wrapped(model: FloatModel, x: Tensor, amounts: Amounts, axis: int, side: int) -> Tensor:
    (before, after), whole = amounts[axis], x.dims[axis]
    count = (before, after)[side]
    start = before if side else whole - after - before
    begin, dims = np.zeros(len(x.dims), np.int32), list(x.dims)
    begin[axis], dims[axis] = start, count
    part = model.op("SLICE", [x, model.const(begin, np.int32), model.const(dims, np.int32)], dims)
    around = (whole - count, 0) if side else (0, whole - count)
    moved = zeros_around(model, part, _only(amounts, axis, around))
    rows = np.arange(whole)
    mask = _mask(x, axis, rows < whole - count if side else rows >= count)
    return model.op("SELECT", [mask, x, moved], x.dims)


def _only(amounts: Amounts, axis: int, around: tuple[int, int]) -> list[tuple[int, int]]:
    return [around if i == axis else (0, 0) for i in range(len(amounts))]


def _mask(x: Tensor, axis: int, rows: np.ndarray) -> Tensor:
    shape = [-1 if i == axis else 1 for i in range(len(x.dims))]
    return FloatModel().const(np.broadcast_to(rows.reshape(shape), x.dims), np.bool_)


def concatenated(model: FloatModel, x: Tensor, amounts: Amounts) -> Tensor:
    """Pads as `circular` does, by concatenations of slices."""
    for axis, (before, after) in enumerate(amounts):
        parts = [_end(model, x, axis, -before), x, _end(model, x, axis, after)]
        kept = [part for part in parts if part is not None]
        dims = [sum(part.dims[i] for part in kept) if i == axis else size for i, size in enumerate(x.dims)]
        if len(kept) > 1:
            x = model.op("CONCATENATION", kept, dims, axis=axis, fused_activation_function=0)
    return x


def _end(model: FloatModel, x: Tensor, axis: int, count: int) -> Tensor | None:
    """Appends a slice of the first rows of an axis, or of the last ones if the count is negative."""
    bounds, dims, others = np.zeros((3, len(x.dims)), np.int32), list(x.dims), (1 << len(x.dims)) - 1 - (1 << axis)
    bounds[0 if count < 0 else 1, axis], bounds[2], dims[axis] = count, 1, abs(count)
    masks = {"begin_mask": others, "end_mask": others | (1 << axis if count < 0 else 0)}
    inputs = [x, *(model.const(row, np.int32) for row in bounds)]
    return model.op("STRIDED_SLICE", inputs, dims, **masks) if count else None


def taken(model: FloatModel, x: Tensor, rows: Sequence[int]) -> Tensor:
    """Takes rows of the last axis of [n, channels, length], by coordinates of a transposed tensor."""
    batch, channels, _ = x.dims
    places = model.const(np.reshape(rows, (-1, 1)), np.int32)
    found = model.op("GATHER_ND", [model.transpose(x, 2, 0, 1), places], (len(rows), batch, channels))
    return model.transpose(found, 1, 2, 0)


AROUND = st.tuples(st.integers(0, 2), st.integers(0, 2))


@settings(max_examples=30)
@given(st.data())
def test_copied_rows_of_any_axes_are_gathered(data: st.DataObject) -> None:
    """Circular padding, zeros, transposes and rows in any order, one after the other."""
    model = FloatModel()
    x = model.elementwise("ABS", model.input(data.draw(st.integers(1, 2)), 3, data.draw(st.integers(2, 4))))
    for kind in data.draw(
        st.lists(st.sampled_from(["circular", "slices", "zeros", "turn", "rows"]), min_size=1, max_size=3)
    ):
        amounts = data.draw(st.tuples(st.just((0, 0)), AROUND, AROUND))
        # No more rows than the axis has.
        copied = [(min(before, size), min(after, size)) for (before, after), size in zip(amounts, x.dims, strict=True)]
        if kind == "circular":
            x = circular(model, x, copied)
        elif kind == "slices":
            x = concatenated(model, x, copied)
        elif kind == "zeros":
            x = zeros_around(model, x, amounts)
        elif kind == "turn":
            x = model.transpose(x, *data.draw(st.permutations(range(3))))
        else:
            x = taken(model, x, data.draw(st.lists(st.integers(0, x.dims[2] - 1), min_size=1, max_size=4)))
    source = model.finish(model.elementwise("NEG", x))
    result = rewritten(source, recognize_borders, remove_dead_ops)
    assert_same_values(source, result)
    if not {"SELECT", "SELECT_V2"}.isdisjoint(op_names(source)) and "PAD" not in op_names(result):
        assert {"SELECT", "SELECT_V2", "GATHER_ND", "SLICE"}.isdisjoint(op_names(result))


def test_circular_padding_is_a_gather_for_each_axis() -> None:
    model = FloatModel()
    x = model.elementwise("ABS", model.input(1, 8, 6, 5))
    source = model.finish(model.elementwise("NEG", circular(model, x, [(0, 0), (0, 0), (1, 2), (2, 0)])))
    result = rewritten(source, recognize_borders)
    assert op_names(result) == ["ABS", "GATHER", "GATHER", "NEG"]
    rows, columns = (op.input(1).array.tolist() for op in result.graphs[0].ops[1:3])
    assert (rows, columns) == ([5, *range(6), 0, 1], [3, 4, *range(5)])
    assert_same_values(source, result)


def test_zeros_around_copied_rows_stay_a_pad() -> None:
    model = FloatModel()
    x = model.elementwise("ABS", model.input(1, 8, 5))
    padded = zeros_around(model, circular(model, x, [(0, 0), (0, 0), (1, 1)]), [(0, 0), (0, 0), (2, 1)])
    mask = model.const(np.ones(padded.dims), np.bool_)
    source = model.finish(
        model.elementwise("NEG", model.op("SELECT", [mask, padded, model.const(np.ones(padded.dims))], padded.dims))
    )
    result = rewritten(source, recognize_borders)
    assert op_names(result) == ["ABS", "GATHER", "PADV2", "NEG"]
    assert_same_values(source, result)


def of_two(model: FloatModel, x: Tensor) -> Tensor:
    mask = model.const(np.arange(x.dims[-1]) % 2 == 0, np.bool_)
    whole = model.const(np.broadcast_to(mask.array, x.dims), np.bool_)
    return model.op("SELECT", [whole, x, model.elementwise("NEG", x)], x.dims)


def with_ones(model: FloatModel, x: Tensor) -> Tensor:
    mask = model.const(np.broadcast_to(np.arange(x.dims[-1]) > 0, x.dims), np.bool_)
    return model.op("SELECT_V2", [mask, x, model.const(1)], x.dims)


def checkered(model: FloatModel, x: Tensor) -> Tensor:
    mask = np.indices(x.dims).sum(axis=0) % 2 == 0
    return model.op("SELECT_V2", [model.const(mask, np.bool_), x, model.const(0)], x.dims)


def shuffled(model: FloatModel, x: Tensor) -> Tensor:
    return model.concatenated(*(_end(model, x, 2, count) or x for count in (-2, 2)))


def diagonal(model: FloatModel, x: Tensor) -> Tensor:
    places = model.const([(0, i, i) for i in range(4)], np.int32)
    return model.op("GATHER_ND", [x, places], (4,))


def by_computed_mask(model: FloatModel, x: Tensor) -> Tensor:
    return model.op("SELECT_V2", [model.elementwise("LESS", x, model.const(0), type="BOOL"), x, model.const(0)], x.dims)


@pytest.mark.parametrize("build", [of_two, with_ones, checkered, shuffled, diagonal, by_computed_mask])
def test_other_selections_stay(build) -> None:
    model = FloatModel()
    x = model.elementwise("ABS", model.input(1, 4, 4))
    source = read_model(model.finish(model.elementwise("NEG", build(model, x))))
    assert not run_pass(recognize_borders, source)[0]


@pytest.mark.parametrize("places", [[[9]], [[-1]], [[0, 0, 0, 0]]])
def test_damaged_coordinates_stay(places: list[list[int]]) -> None:
    model = FloatModel()
    x = model.elementwise("ABS", model.input(3, 4, 4))
    found = model.op("GATHER_ND", [x, model.const(places, np.int32)], (1, 4, 4))
    source = read_model(model.finish(model.elementwise("NEG", found)))
    assert not run_pass(recognize_borders, source)[0]


Pad = Callable[[FloatModel, Tensor], Tensor]
Quantize = Callable[[FloatModel, Tensor], Tensor]


def channels_last(model: FloatModel, x: Tensor) -> Tensor:
    if len(x.dims) == 4:
        return model.transpose(x, 0, 2, 3, 1)
    batch, channels, length = x.dims
    return model.transpose(model.reshape(x, batch, channels, 1, length), 0, 2, 3, 1)


def layer(model: FloatModel, x: Tensor) -> Tensor:
    """Appends a channel-first convolution, of one or two dimensions."""
    taps = (3, 3) if len(x.dims) == 4 else (1, 3)
    y = model.conv(channels_last(model, x), sign_weights(np.random.default_rng(0), 32, *taps, 32))
    y = model.transpose(y, 0, 3, 1, 2)
    return y if len(x.dims) == 4 else model.reshape(y, y.dims[0], 32, y.dims[3])


def around(*amounts: tuple[int, int]) -> Pad:
    whole: Amounts = [(0, 0), (0, 0), *amounts]
    return lambda model, x: circular(model, x, whole)


def edges(model: FloatModel, x: Tensor) -> Tensor:
    return taken(model, x, [0, 0, *range(x.dims[2]), x.dims[2] - 1])


def reflection(model: FloatModel, x: Tensor) -> Tensor:
    return taken(model, x, [2, 1, *range(x.dims[2]), x.dims[2] - 2])


PADS = {
    "circular": (around((1, 1), (1, 1)), (8, 8)),
    "circular of two amounts": (around((1, 2), (0, 3)), (6, 7)),
    "circular, of slices": (lambda m, x: concatenated(m, x, [(0, 0), (0, 0), (1, 1), (2, 1)]), (6, 7)),
    "circular rows, of slices": (lambda m, x: concatenated(m, x, [(0, 0), (0, 0), (2, 1)]), (9,)),
    "circular rows": (around((1, 1)), (9,)),
    "replicated rows": (edges, (9,)),
    "reflected rows": (reflection, (9,)),
}


@pytest.mark.parametrize("is_first", [True, False], ids=["pad, sign", "sign, pad"])
@pytest.mark.parametrize("name", PADS)
def test_padded_signs_between_layers_are_bits(name: str, is_first: bool) -> None:
    pad, sizes = PADS[name]
    model, batch = FloatModel(), 1 + is_first
    x = layer(model, model.sign(model.input(batch, 32, *sizes), "where_ge"))
    x = model.sign(pad(model, x), "where_ge") if is_first else pad(model, model.sign(x, "where_ge"))
    source = model.finish(layer(model, x))
    result, report = litebnn.convert_tflite(source, return_report=True)
    assert [kept.binary for kept in report.layers] == [True, True]
    assert [kept.output for kept in report.layers] == ["bits", "FLOAT32"]
    names = op_names(result)
    assert names.count("LceBconv2d") == 2
    first, last = (index for index, op in enumerate(names) if op == "LceBconv2d")
    assert set(names[first + 1 : last]) == {"GATHER"}
    check_outputs(source, result, (batch, 32, *sizes))


def check_outputs(source: bytes, result: bytes, shape: tuple[int, ...]) -> None:
    sample = dyadic(np.random.default_rng(0), *shape, largest=12)
    expected, actual = (litebnn.Interpreter(each).predict(sample) for each in (source, result))
    np.testing.assert_allclose(actual, expected, rtol=0, atol=1e-4)


def zero_or_one(model: FloatModel, x: Tensor) -> Tensor:
    return model.two_values(x)


def two_bits(model: FloatModel, x: Tensor) -> Tensor:
    clipped = model.elementwise("RELU_0_TO_1", x)
    levels = model.elementwise("ROUND", model.elementwise("MUL", clipped, model.const(3)))
    return model.elementwise("MUL", levels, model.const(1 / 3))


@pytest.mark.parametrize("quantize", [zero_or_one, two_bits])
@pytest.mark.parametrize("name", PADS)
def test_padded_levels_become_binary(name: str, quantize: Quantize) -> None:
    pad, sizes = PADS[name]
    model = FloatModel()
    source = model.finish(layer(model, pad(model, quantize(model, model.input(2, 32, *sizes)))))
    result, report = litebnn.convert_tflite(source, return_report=True)
    assert report.layers[0].binary
    check_outputs(source, result, (2, 32, *sizes))
