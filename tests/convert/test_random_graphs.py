"""Random graphs of the patterns that exporters leave: converted and source agree bit for bit."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import litebnn
from litebnn.flatbuffer import read_model
from litebnn.graph import Array, Tensor
from tests.support.float_models import SIGN_FORMS, FloatModel, dyadic, sign_weights

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


def _conv(draw: Draw, model: FloatModel, rng: np.random.Generator, x: Tensor) -> Tensor:
    """A sign and a convolution of it, with everything that may stand between and behind them."""
    x = model.sign(x, draw(st.sampled_from(SIGN_FORMS)), draw(st.sampled_from([0.0, 0.0, 0.25, -1.5])))
    taps = draw(st.sampled_from([(1, 1), (3, 3), (2, 3), (1, 2)]))
    stride, dilation = draw(st.sampled_from([(1, 1), (2, 2), (2, 1)])), (1, 1)
    if stride == (1, 1):
        dilation = draw(st.sampled_from([(1, 1), (2, 2), (1, 2)]))
    same, padding = False, draw(st.sampled_from(["valid", "same", "ones", "ones_like_same", "zeros", "minus_ones"]))
    if padding == "same":
        same = True
    elif padding == "ones_like_same":
        amounts = []
        for size, k, s, d in zip(x.dims[1:3], taps, stride, dilation, strict=True):
            total = max((-(-size // s) - 1) * s + (k - 1) * d + 1 - size, 0)
            amounts.append((total // 2, total - total // 2))
        x = model.pad(x, amounts, 1.0)
    elif padding != "valid":
        amounts = [draw(st.sampled_from([(0, 0), (1, 1), (0, 1), (1, 0), (2, 1)])) for _ in range(2)]
        x = model.pad(x, amounts, {"ones": 1.0, "minus_ones": -1.0, "zeros": None}[padding])
    if any(size < (k - 1) * d + 1 for size, k, d in zip(x.dims[1:3], taps, dilation, strict=True)):
        same = True
    channels = x.dims[3]
    groups = draw(st.sampled_from([1, channels // 32])) if channels % 64 == 0 else 1
    channels_out = draw(st.sampled_from([2, 8, 32, 33, 64]))
    channels_out += -channels_out % groups
    weights = sign_weights(rng, channels_out, *taps, channels // groups)
    oddity = draw(st.integers(0, 19))
    if oddity == 0:
        weights.reshape(-1)[rng.integers(weights.size)] = 0.0
    elif oddity == 1:
        weights[0] = 0.0
    bias = dyadic(rng, channels_out) if draw(st.booleans()) else None
    return model.conv(x, weights, bias, same=same, stride=stride, dilation=dilation, activation=draw(ACTIVATIONS))


def _pool(draw: Draw, model: FloatModel, x: Tensor) -> Tensor:
    taps, stride = draw(st.sampled_from([(2, 2), (3, 2), (2, 1)]))
    same = draw(st.booleans()) or min(x.dims[1:3]) < taps
    return model.max_pool(x, taps, stride, same=same, activation=draw(ACTIVATIONS))


class Case:
    """A float model, and the seed of its input."""

    def __init__(self, source: bytes, seed: int) -> None:
        self.source, self.seed = source, seed

    def __repr__(self) -> str:
        ops = (f"{op.name}{[t.dims for t in op.inputs if t is not None]}" for op in read_model(self.source).ops())
        return f"seed {self.seed}: " + ", ".join(ops)


@st.composite
def graphs(draw: Draw) -> Case:
    seed = draw(st.integers(0, 2**16))
    rng = np.random.default_rng(seed)
    model = FloatModel()
    channels = draw(st.sampled_from([32, 64, 40, 3]))
    x = model.input(1, draw(st.integers(4, 7)), draw(st.integers(4, 7)), channels)
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
            x = model.reshape(model.sign(x, draw(st.sampled_from(SIGN_FORMS))), 1, int(np.prod(x.dims)))
        else:
            x = model.sign(model.reshape(x, 1, int(np.prod(x.dims))), draw(st.sampled_from(SIGN_FORMS)))
        x = model.dense(x, sign_weights(rng, 24, x.dims[1]), dyadic(rng, 24), activation=draw(ACTIVATIONS))
        x = _after(draw, model, rng, x)
        if draw(st.booleans()):
            x = model.dense(model.sign(x), sign_weights(rng, 5, 24))
    if x in outputs:
        outputs.remove(x)
    return Case(model.finish(x, *outputs), seed)


def _convert(source: bytes) -> bytes:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return bytes(litebnn.convert_tflite(source))


def _run(model: bytes, x: Array) -> list[Array]:
    result = litebnn.Interpreter(model).predict(x)
    return result if isinstance(result, list) else [result]


@pytest.mark.usefixtures("library")
@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(graphs())
def test_a_converted_graph_computes_what_its_source_does(case: Case) -> None:
    shape = read_model(case.source).graphs[0].inputs[0].shape
    x = dyadic(np.random.default_rng(case.seed), 2, *shape[1:], largest=16)
    for expected, actual in zip(_run(case.source, x), _run(_convert(case.source), x), strict=True):
        np.testing.assert_array_equal(actual, expected)


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
    for expected, actual in zip(
        _run(source, every_dot_product), _run(_convert(source), every_dot_product), strict=True
    ):
        np.testing.assert_array_equal(actual, expected)
