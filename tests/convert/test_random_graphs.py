"""Random graphs of the patterns that exporters leave: converted and source agree bit for bit."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import litebnn
from litebnn.flatbuffer import read_model
from litebnn.graph import Array, Tensor, facts
from litebnn.rewriting.constants import evaluate
from litebnn.rewriting.weights import weight_values
from litebnn.runtime.intermediates import interpreter_for, with_outputs
from litebnn.runtime.predictor import arrays_of
from tests.support.float_models import SIGN_FORMS, FloatModel, dyadic, sign_weights
from tests.support.quantized_models import (
    EXACT_GRID,
    INT8_SIGNS,
    NO_MINUS_GRID,
    USUAL_GRID,
    Int8Model,
    in_half_precision,
    with_int8_weights,
)

Draw = Any

ACTIVATIONS = st.sampled_from(["none", "none", "relu", "relu6", "relu1"])


def _scale(draw: Draw, rng: np.random.Generator, channels: int) -> Array:
    size = draw(st.sampled_from([1, channels]))
    values = rng.choice([0.25, 0.5, 1.0, 2.0], size) * np.where(
        rng.random(size) < draw(st.sampled_from([0, 0.3])), -1, 1
    )
    if draw(st.integers(0, 9)) == 0:
        values[0] = 0.0
    return values.astype(np.float32)


def _after(draw: Draw, model: FloatModel, rng: np.random.Generator, x: Tensor) -> Tensor:
    """Batch norms and activations behind a layer, in any order."""
    channels = x.dims[-1]
    for kind in draw(
        st.lists(st.sampled_from(["MUL", "ADD", "SUB", "DIV", "NEG", "RSUB", "RELU", "RELU6"]), max_size=4)
    ):
        if kind in ("RELU", "RELU6", "NEG"):
            x = model.elementwise(kind, x)
            continue
        activation = draw(ACTIVATIONS) if draw(st.integers(0, 5)) == 0 else "none"
        if kind == "MUL":
            x = model.elementwise("MUL", x, model.const(_scale(draw, rng, channels)), activation=activation)
        elif kind == "DIV":
            divisor = rng.choice([-2.0, 0.5, 1.0, 4.0], channels)
            x = model.elementwise("DIV", x, model.const(divisor), activation=activation)
        else:
            offset = model.const(dyadic(rng, draw(st.sampled_from([1, channels]))))
            sides = (offset, x) if kind == "RSUB" else (x, offset)
            x = model.elementwise("SUB" if kind == "RSUB" else kind, *sides, activation=activation)
    return x


def _signs(draw: Draw, model: FloatModel, x: Tensor) -> Tensor:
    """A sign in any form, or two other values that a boolean decides."""
    form = draw(st.sampled_from(["two values", "broadcast", *SIGN_FORMS]))
    if form == "two values":
        values = draw(st.sampled_from([(0.0, 1.0), (1.0, 0.0), (-0.5, 0.5), (-1.0, 3.0)]))
        return model.two_values(x, *values, draw(st.sampled_from(["GREATER_EQUAL", "GREATER", "LESS"])))
    if form == "broadcast" and len(x.dims) == 4:
        axes = draw(st.sampled_from([(1, 2), (1,), (3,), (1, 3)]))
        shape = [1 if axis in axes else size for axis, size in enumerate(x.dims)]
        largest = model.op("REDUCE_MAX", [x, model.const(axes, np.int32)], shape, keep_dims=True)
        condition = model.elementwise("GREATER", largest, model.const(2.5), type="BOOL")
        minus = model.const(-np.ones((1, *x.shape[1:])))
        return model.op("SELECT_V2", [condition, model.const(1), minus], x.dims)
    form = draw(st.sampled_from(SIGN_FORMS)) if form == "broadcast" else form
    return model.sign(x, form, draw(st.sampled_from([0.0, 0.0, 0.25, -1.5])))


def _weights(draw: Draw, model: FloatModel, rng: np.random.Generator, *shape: int) -> Tensor | Array:
    """Weights of ±alpha, sometimes computed in the model, and sometimes with a zero."""
    weights = sign_weights(rng, *shape)
    oddity = draw(st.integers(0, 19))
    if oddity == 0:
        weights.reshape(-1)[rng.integers(weights.size)] = 0.0
    elif oddity == 1:
        weights[0] = 0.0
    elif oddity <= 4:
        clipped = model.elementwise("RELU_N1_TO_1", model.const(weights * rng.integers(1, 9, weights.shape)))
        alpha = model.elementwise("ABS", model.const(-np.exp2(rng.integers(-2, 2, (shape[0], 1, 1, 1)))))
        return model.elementwise("MUL", model.sign(clipped), alpha)
    return weights


def _pad_values(draw: Draw, model: FloatModel, x: Tensor, axes: int) -> Tensor:
    amounts = [draw(st.sampled_from([(0, 0), (1, 1), (0, 1), (1, 0), (2, 1), (4, 0)])) for _ in range(axes)]
    return model.pad(x, amounts, draw(st.sampled_from([None, 0.0, 1.0, -1.0])))


def _conv(draw: Draw, model: FloatModel, rng: np.random.Generator, x: Tensor) -> Tensor:
    """A sign and a convolution of it, with everything that may stand between them."""
    x = _signs(draw, model, x)
    kinds = [_conv_2d, _conv_2d, _conv_2d, _conv_1d, _split_conv]
    if x.dims[0] > 0:  # a transposed convolution names the whole shape of its output
        kinds.append(_transposed_conv)
    return draw(st.sampled_from(kinds))(draw, model, rng, x)


def _conv_2d(draw: Draw, model: FloatModel, rng: np.random.Generator, x: Tensor) -> Tensor:
    taps = draw(st.sampled_from([(1, 1), (3, 3), (2, 3), (1, 2)]))
    stride, dilation = draw(st.sampled_from([(1, 1), (2, 2), (2, 1)])), (1, 1)
    if stride == (1, 1):
        dilation = draw(st.sampled_from([(1, 1), (2, 2), (1, 2)]))
    same, padding = False, draw(st.sampled_from(["valid", "same", "padded", "padded_same", "ones_like_same"]))
    if padding == "same":
        same = True
    elif padding == "ones_like_same":
        amounts = []
        for size, k, s, d in zip(x.dims[1:3], taps, stride, dilation, strict=True):
            total = max((-(-size // s) - 1) * s + (k - 1) * d + 1 - size, 0)
            amounts.append((total // 2, total - total // 2))
        x = model.pad(x, amounts, 1.0)
    elif padding != "valid":
        x = _pad_values(draw, model, x, 2)
        same = padding == "padded_same"
    if any(size < (k - 1) * d + 1 for size, k, d in zip(x.dims[1:3], taps, dilation, strict=True)):
        same = True
    channels = x.dims[3]
    groups = draw(st.sampled_from([1, channels // 32])) if channels % 64 == 0 else 1
    channels_out = draw(st.sampled_from([2, 8, 32, 33, 64]))
    channels_out += -channels_out % groups
    weights = _weights(draw, model, rng, channels_out, *taps, channels // groups)
    bias = dyadic(rng, channels_out) if draw(st.booleans()) else None
    return model.conv(x, weights, bias, same=same, stride=stride, dilation=dilation, activation=draw(ACTIVATIONS))


def _transposed_conv(draw: Draw, model: FloatModel, rng: np.random.Generator, x: Tensor) -> Tensor:
    taps = draw(st.sampled_from([(2, 2), (3, 3), (4, 4), (5, 2)]))
    same, odd = draw(st.booleans()), draw(st.integers(0, 1))
    weights = sign_weights(rng, draw(st.sampled_from([8, 32, 33])), *taps, x.dims[3])
    bias = dyadic(rng, len(weights)) if draw(st.booleans()) else None
    return model.transposed_conv(x, weights, bias, same=same, activation=draw(ACTIVATIONS), odd=odd)


def _conv_1d(draw: Draw, model: FloatModel, rng: np.random.Generator, x: Tensor) -> Tensor:
    """A convolution along one axis, perhaps causal or the long way round to a dilation."""
    batch, height, width, channels = x.dims
    x = _pad_values(draw, model, model.reshape(x, batch, height * width, channels), 1)
    x = model.pad(x, [(4, 2)]) if x.dims[1] < 6 else x
    split = x.dims[1] % 2 == 0 and draw(st.booleans())
    if split:
        x = model.space_to_batch(x, [2], [draw(st.sampled_from([(0, 0), (2, 2), (3, 1)]))])
    y = model.conv(model.expand(x, 1), _weights(draw, model, rng, 32, 1, 3, channels), activation=draw(ACTIVATIONS))
    y = model.reshape(y, y.dims[0], y.dims[2], 32)
    if split:
        y = model.batch_to_space(y, [2], [draw(st.sampled_from([(0, 0), (0, 1)]))])
    return model.reshape(y, batch, 1, y.dims[1], 32)


def _split_conv(draw: Draw, model: FloatModel, rng: np.random.Generator, x: Tensor) -> Tensor:
    """A dilated convolution the long way round."""
    pads = [(2 + size % 2, 2) for size in x.dims[1:3]]
    x = model.space_to_batch(x, [2, 2], pads)
    y = model.conv(x, _weights(draw, model, rng, 32, 3, 3, x.dims[3]), activation=draw(ACTIVATIONS))
    crops = [draw(st.sampled_from([(0, 0), (1, 0), (0, 2), (1, 1)])) if size > 1 else (0, 0) for size in y.dims[1:3]]
    return model.batch_to_space(y, [2, 2], crops)


def _pool(draw: Draw, model: FloatModel, x: Tensor) -> Tensor:
    taps, stride = draw(st.sampled_from([(2, 2), (3, 2), (2, 1)]))
    same = draw(st.booleans()) or min(x.dims[1:3]) < taps
    return model.max_pool(x, taps, stride, same=same, activation=draw(ACTIVATIONS))


class Case:
    """A model, the seed of its input, and how many levels its quantized outputs may be off."""

    def __init__(self, source: bytes, seed: int, levels: int = 0) -> None:
        self.source, self.seed, self.levels = source, seed, levels

    def __repr__(self) -> str:
        ops = (f"{op.name}{[t.dims for t in op.inputs if t is not None]}" for op in read_model(self.source).ops())
        return f"seed {self.seed}: " + ", ".join(ops)


@st.composite
def graphs(draw: Draw) -> Case:
    seed = draw(st.integers(0, 2**16))
    rng = np.random.default_rng(seed)
    model = FloatModel()
    channels = draw(st.sampled_from([32, 64, 40, 3]))
    batch = draw(st.sampled_from([1, 4, -1]))
    sizes = (draw(st.integers(4, 7)), draw(st.integers(4, 7)), channels)
    signature = (batch, *sizes) if batch < 0 else None
    x = model.input(abs(batch), *sizes, signature=signature)
    if draw(st.integers(0, 4)) == 0:
        x = model.elementwise("SUB", x, model.input(abs(batch), *sizes, signature=signature))
    outputs = []
    for _ in range(draw(st.integers(1, 3))):
        before = x
        if draw(st.booleans()):
            x = _after(draw, model, rng, x)
        x = _conv(draw, model, rng, x)
        if draw(st.booleans()):
            x = _after(draw, model, rng, x)
        if draw(st.integers(0, 2)) == 0:
            x = _pool(draw, model, x)
        x = _after(draw, model, rng, x)
        if before.dims == x.dims and draw(st.booleans()):
            x = model.elementwise("ADD", x, before)
        if draw(st.integers(0, 4)) == 0:
            outputs.append(x)
    if draw(st.booleans()):
        if draw(st.booleans()):
            x = model.reshape(model.sign(x, draw(st.sampled_from(SIGN_FORMS))), batch, int(np.prod(x.dims[1:])))
        else:
            x = model.sign(model.reshape(x, batch, int(np.prod(x.dims[1:]))), draw(st.sampled_from(SIGN_FORMS)))
        x = model.dense(x, sign_weights(rng, 24, x.dims[1]), dyadic(rng, 24), activation=draw(ACTIVATIONS))
        x = _after(draw, model, rng, x)
        if draw(st.booleans()):
            x = model.dense(model.sign(x), sign_weights(rng, 5, 24))
    if x in outputs:
        outputs.remove(x)
    return Case(model.finish(x, *outputs), seed)


@st.composite
def int8_graphs(draw: Draw) -> Case:
    """Signs of int8 values, what may stand between, and int8 layers, one of other weights now and then.

    On a grid that holds 1 and -1 all levels come out the same, so that layers follow each other; on others a level may
    be rounded to its neighbour, and a sign turn over by it.
    """
    seed = draw(st.integers(0, 2**16))
    rng = np.random.default_rng(seed)
    model = Int8Model()
    grid = draw(st.sampled_from([EXACT_GRID, EXACT_GRID, USUAL_GRID, NO_MINUS_GRID]))
    exact = grid == EXACT_GRID
    step = 1 / 8 if exact else float(rng.uniform(0.02, 0.2))
    batch = draw(st.sampled_from([1, 4, -1]))
    sizes = (draw(st.integers(4, 6)), draw(st.integers(4, 6)), draw(st.sampled_from([32, 40])))
    signature = (batch, *sizes) if batch < 0 else None
    x = model.input8((1 / 16, int(rng.integers(-128, 20))), abs(batch), *sizes, signature=signature)
    outputs = []
    for _ in range(draw(st.integers(1, 3)) if exact else 1):
        form = draw(st.sampled_from(INT8_SIGNS if exact else INT8_SIGNS[:-1]))
        x = model.sign8(x, form, grid)
        for between in draw(st.lists(st.sampled_from(["pool", "zeros", "ones"]), max_size=2)):
            x = (
                model.pool8(x)
                if between == "pool" and min(x.dims[1:3]) > 1
                else model.pad8(x, None if between == "zeros" else 1.0)
            )
        weights = sign_weights(rng, draw(st.sampled_from([8, 33])), 3, 3, x.dims[3])
        if draw(st.integers(0, 5)) == 0:
            weights *= rng.integers(0, 3, weights.shape)
        activation = draw(st.sampled_from(["none", "relu"]))
        results = (step, -128 if activation == "relu" else int(rng.integers(-20, 20)))
        same = draw(st.booleans()) or min(x.dims[1:3]) < 3
        x = model.conv8(x, weights, dyadic(rng, len(weights)), results, same=same, activation=activation)
        outputs.append(x)
    if draw(st.booleans()):
        rows = model.reshape8(model.sign8(x, "where", grid), batch, int(np.prod(x.dims[1:]))) if exact else None
        if rows is not None:
            weights = sign_weights(rng, 10, rows.dims[1], alpha=False)
            outputs.append(model.dense8(rows, weights, dyadic(rng, 10), (1.0, 3)))
    return Case(model.finish(*outputs[-2:]), seed, levels=0 if exact else 1)


def _convert(source: bytes) -> tuple[bytes, litebnn.ConversionReport]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        converted, report = litebnn.convert_tflite(source, return_report=True)
    return converted, report


def _run(model: bytes, x: Array | list[Array]) -> list[Array]:
    result = litebnn.Interpreter(model).predict(x)
    return result if isinstance(result, list) else [result]


def _inputs(case: Case) -> list[Array]:
    rng = np.random.default_rng(case.seed)
    tensors = read_model(case.source).graphs[0].inputs
    shapes = [[size if size > 0 else 3 for size in tensor.dims] for tensor in tensors]
    return [
        rng.integers(-128, 128, shape).astype(np.int8) if tensor.type == "INT8" else dyadic(rng, *shape, largest=16)
        for tensor, shape in zip(tensors, shapes, strict=True)
    ]


def _check(case: Case) -> None:
    """Source and result agree, and every layer is binary or has a reason why not."""
    inputs = _inputs(case)
    converted, report = _convert(case.source)
    for expected, actual in zip(_run(case.source, inputs), _run(converted, inputs), strict=True):
        if expected.dtype == np.float32:
            np.testing.assert_array_equal(actual, expected)
        else:
            assert np.max(np.abs(actual.astype(np.int32) - expected)) <= case.levels
    _check_reasons(case, report, inputs)


def _check_reasons(case: Case, report: litebnn.ConversionReport, inputs: list[Array]) -> None:
    """Every layer is binary or has reasons, and what these say of its weights and its input is so."""
    model = read_model(case.source)
    [graph] = model.graphs
    layers = {op.output.name: op for op in graph.ops if facts(op).layer}
    left = [layer for layer in report.layers if not layer.binary]
    assert all(layer.reasons for layer in left), str(report)
    # A tensor whose batch is not the input's cannot be observed.
    batch = graph.inputs[0].dims[0]
    left = [layer for layer in left if layers[layer.name].input(facts(layers[layer.name]).data).dims[0] == batch]
    left = [layer for layer in left if "BATCH" not in getattr(graph.producer(layers[layer.name].input(0)), "name", "")]
    if not left:
        return
    read = [layers[layer.name].input(facts(layers[layer.name]).data) for layer in left]
    interpreter = interpreter_for("a test", with_outputs(model, read))
    observed = arrays_of(interpreter.predict(inputs))[-len(read) :]
    for layer, values in zip(left, observed, strict=True):
        weights = layers[layer.name].input(1)
        known = weight_values(weights) if weights.is_constant else evaluate(graph, weights)
        assert known is not None
        for reason in layer.reasons:
            checks = [check for words, check in _TRUTH.items() if words in reason]
            assert checks, f"{layer.name}: no check for {reason}"
            assert checks[0](known, values), f"{layer.name}: {reason}"


def _magnitudes(weights: Array) -> list[int]:
    """How many magnitudes the weights have in each output channel, zero left out."""
    return [np.unique(np.abs(channel[channel != 0])).size for channel in weights]


# What reasons say, and how to see from weights [O, ...] and the values of the input whether it is so.
_TRUTH: dict[str, Callable[[Array, Array], bool]] = {
    "contain zeros": lambda weights, x: bool(np.any(weights == 0)) and max(_magnitudes(weights)) == 1,
    "not ±alpha": lambda weights, x: max(_magnitudes(weights)) > 1,
    "are all zero": lambda weights, x: not np.any(weights),
    "not the output of a sign": lambda weights, x: np.unique(x).size > 2,
    "takes two values that are not": lambda weights, x: np.unique(x).size <= 3,
    "stands between the sign and it": lambda weights, x: True,
    "and is padded with": lambda weights, x: np.unique(x).size <= 3,
    "depends on a size that is not known": lambda weights, x: True,
}


EXAMPLES = {"deadline": None, "suppress_health_check": list(HealthCheck), "derandomize": True}


def _check_half_precision(case: Case) -> None:
    _check(Case(in_half_precision(case.source), case.seed))


def _check_int8_weights(case: Case) -> None:
    """Where all layers are binary, the result computes what the float model does, and the source does not quite."""
    source = Case(with_int8_weights(case.source), case.seed)
    converted, report = _convert(source.source)
    inputs = _inputs(source)
    _check_reasons(source, report, inputs)
    if all(layer.binary for layer in report.layers):
        for expected, actual in zip(_run(case.source, inputs), _run(converted, inputs), strict=True):
            np.testing.assert_array_equal(actual, expected)


KINDS = {
    "float": (graphs(), _check),
    "int8": (int8_graphs(), _check),
    "half_precision": (graphs(), _check_half_precision),
    "int8_weights": (graphs(), _check_int8_weights),
}


@pytest.mark.usefixtures("library")
@pytest.mark.parametrize("kind", KINDS)
def test_a_converted_graph_computes_what_its_source_does(kind: str) -> None:
    _check_many(kind, 300 if kind == "float" else 100)


@pytest.mark.long
@pytest.mark.usefixtures("library")
@pytest.mark.parametrize("kind", KINDS)
def test_many_converted_graphs_compute_what_their_sources_do(kind: str) -> None:
    _check_many(kind, 20_000)


def _check_many(kind: str, count: int) -> None:
    cases, check = KINDS[kind]
    settings(max_examples=count, **EXAMPLES)(given(cases)(check))()


@pytest.mark.usefixtures("library")
@pytest.mark.parametrize("strict", ["where_ge", "where_gt"])
def test_a_dot_product_right_at_the_threshold_of_a_negated_sign(strict: str) -> None:
    model = FloatModel()
    rows = model.input(1, 32, signature=(-1, 32))
    x = model.dense(model.sign(rows), np.ones((8, 32)), np.full(8, 5.0))
    # A bias less one unit in the last place of an addend that is smaller would round to the bias.
    x = model.elementwise("SUB", x, model.const(np.full(8, 0.25)))
    x = model.elementwise("NEG", model.elementwise("ADD", x, model.const(np.arange(8) / 4)))
    source = model.finish(model.dense(model.sign(x, strict), np.ones((1, 8))))
    every_dot_product = np.where(np.tri(33, 32, -1) > 0, -1, 1).astype(np.float32)
    converted, _ = _convert(source)
    for expected, actual in zip(_run(source, every_dot_product), _run(converted, every_dot_product), strict=True):
        np.testing.assert_array_equal(actual, expected)
