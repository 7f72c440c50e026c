"""sign(x) is 0 where x is 0. The conversions of networks in which that happens often give the same numbers as the
source, with assume_nonzero and without."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import litebnn
from litebnn.analysis.reasons import STAYS_TERNARY
from litebnn.contract import LCE_BCONV_2D
from litebnn.flatbuffer import read_model
from litebnn.graph import Array, Tensor
from litebnn.rules.build.bconv import bconv_options
from tests.support.float_models import SIGN_FORMS, FloatModel, dyadic, sign_weights
from tests.support.sign_spellings import SPELLINGS
from tests.zeros.chains import CHAIN, JOINS, chained, chains

RNG = np.random.default_rng(0)
WEIGHTS = sign_weights(RNG, 8, 3, 3, 32)
NEVER_NEGATIVE = ("RELU", "RELU6", "ABS", "SQUARE", "RELU_0_TO_1")
pytestmark = [pytest.mark.usefixtures("library"), pytest.mark.filterwarnings("ignore:no binary layer")]


def of_sign(model: FloatModel, x: Tensor, layer: str = "conv") -> Tensor:
    """Adds a layer that reads the sign of x."""
    sign = model.elementwise("SIGN", x)
    if layer == "dense":
        count = sign.dims[1] * sign.dims[2] * sign.channels
        return model.dense(model.reshape(sign, 1, count), sign_weights(RNG, 8, count))
    if layer == "depthwise":
        return model.depthwise_conv(sign, sign_weights(RNG, 1, 2, 2, sign.channels), np.zeros(sign.channels))
    channels = sign.channels // 2 if layer == "groups" else sign.channels
    return model.conv(sign, sign_weights(RNG, 8, 2, 2, channels), same=layer == "padded conv")


def samples(*shape: int) -> Array:
    """Samples in which a tenth of the values are zeros, and all others no multiples of 1/8."""
    rng = np.random.default_rng(1)
    return np.where(rng.random(shape) < 0.1, 0, dyadic(rng, *shape) + np.float32(1 / 16)).astype(np.float32)


def binary_of(source: bytes, x: Any, **options: bool) -> list[bool]:
    """Checks that the converted model gives the source's outputs, and returns which layers are binary."""
    converted, report = litebnn.convert_tflite(source, return_report=True, **options)
    expected, actual = (litebnn.Interpreter(each).predict(x) for each in (source, converted))
    for left, right in zip(actual, expected, strict=True):
        np.testing.assert_array_equal(left, right)
    return [layer.binary for layer in report.layers]


@settings(max_examples=20)
@given(
    activation=st.sampled_from(NEVER_NEGATIVE),
    names=chains(*sorted(set(CHAIN) - {"at most 0", "ones", "minus ones"}), longest=3),
    layer=st.sampled_from(["conv", "padded conv", "dense"]),
)
def test_the_sign_of_what_is_never_negative_needs_no_option(activation: str, names: list[str], layer: str) -> None:
    model = FloatModel()
    x = chained(model, model.input(1, 12, 12, 6), [activation, *names])
    source, x = model.finish(of_sign(model, x, layer)), samples(1, 12, 12, 6)
    for assume_nonzero in (False, True):
        assert binary_of(source, x, assume_nonzero=assume_nonzero) == [True]


@pytest.mark.parametrize("form", [*SIGN_FORMS, *SPELLINGS])
@pytest.mark.parametrize("shift", [0, 0.25, -0.25])
def test_a_sign_that_is_always_one_is_read_as_one_in_any_form(form: str, shift: float) -> None:
    """The forms compute with numbers, such as 0 and 1, of which only one occurs."""
    model = FloatModel()
    x = model.elementwise("ADD", model.elementwise("RELU", model.input(1, 12, 12, 6)), model.const(max(shift, 0)))
    x = SPELLINGS[form](model, x) if form in SPELLINGS else model.sign(x, form, min(shift, 0))
    source = model.finish(model.conv(x, sign_weights(RNG, 8, 2, 2, 6), same=True))
    assert binary_of(source, samples(1, 12, 12, 6)) == [True]


def padded(model: FloatModel, names: list[str], shape: tuple[int, ...] = (1, 12, 12, 6)) -> Tensor:
    return chained(model, model.input(*shape), names)


@settings(max_examples=30)
@given(
    names=chains(*sorted(CHAIN), longest=4),
    layer=st.sampled_from(["conv", "padded conv", "dense", "depthwise"]),
    seed=st.integers(0, 9),
)
def test_zeros_of_activations_pads_and_pools_stay_zeros(names: list[str], layer: str, seed: int) -> None:
    """The samples for assume_nonzero have no zeros: all zeros come from the ops in front of the sign."""
    model = FloatModel()
    x = padded(model, names)
    source = model.finish(of_sign(model, x, layer), model.conv(model.sign(model.input(1, 4, 4, 32)), WEIGHTS))
    numbers = np.random.default_rng(seed).standard_normal((1, 12, 12, 6)).astype(np.float32)
    others = samples(1, 4, 4, 32)
    binary_of(source, [numbers, others], assume_nonzero=True)
    binary_of(source, [np.where(numbers > 1, 0, numbers).astype(np.float32), others])


JOINED = ("RELU", "RELU6", "RELU_N1_TO_1", "ABS", "NEG", "at most 0", "max", "nearest", "zeros", "doubled", "divided")


@settings(max_examples=20)
@given(
    first=chains(*JOINED, longest=2),
    second=chains(*JOINED, longest=2),
    join=st.sampled_from([*JOINS, "CONCATENATION"]),
    layer=st.sampled_from(["conv", "padded conv", "dense", "depthwise", "groups"]),
    seed=st.integers(0, 9),
)
def test_zeros_of_joined_chains_stay_zeros(
    first: list[str], second: list[str], join: str, layer: str, seed: int
) -> None:
    """The chains have an input each, or the second one continues the first, which then has several readers."""
    model, continues = FloatModel(), seed % 2 and join not in ("ADD", "SUB")  # x - x is 0 everywhere
    x = chained(model, model.input(1, 12, 12, 6), first)
    other = chained(model, x if continues else chained(model, model.input(1, 12, 12, 6), first), second)
    sizes = [min(pair) for pair in zip(x.dims, other.dims, strict=True)]
    parts = [
        model.op("SLICE", [each, *(model.const(n, np.int32) for n in ([0] * 4, sizes))], sizes) for each in (x, other)
    ]
    total = model.concatenated(*parts) if join == "CONCATENATION" else model.elementwise(join, *parts)
    source = model.finish(of_sign(model, total, layer), other)
    rng, count = np.random.default_rng(seed), len(model.graph.inputs)
    numbers = [rng.standard_normal((1, 12, 12, 6)).astype(np.float32) for _ in range(count)]
    for assume_nonzero in (False, True):
        binary_of(source, numbers if count > 1 else numbers[0], assume_nonzero=assume_nonzero, verify=False)


@pytest.mark.parametrize(
    ("names", "layer"),
    [
        (["zeros"], "conv"),
        (["zeros"], "padded conv"),
        (["zeros before"], "conv"),
        (["zeros", "doubled", "TANH"], "conv"),
        (["zeros", "LEAKY_RELU", "opposite"], "conv"),
        (["zeros", "of channels"], "conv"),
        (["zeros", "zeros before"], "conv"),
    ],
)
def test_zeros_that_pad_pad_the_sign(names: list[str], layer: str) -> None:
    model = FloatModel()
    source = model.finish(of_sign(model, padded(model, names), layer))
    x = np.random.default_rng(0).standard_normal((1, 12, 12, 6)).astype(np.float32)
    assert binary_of(source, x, assume_nonzero=True) == [True]
    assert binary_of(source, x) == [False]


def test_padding_moves_behind_a_straight_through_estimator() -> None:
    model = FloatModel()
    x = padded(model, ["zeros"])
    clipped = model.elementwise("RELU_N1_TO_1", x)
    difference = model.elementwise("SUB", model.elementwise("SIGN", x), clipped)
    sign = model.elementwise("ADD", difference, clipped)
    source = model.finish(model.conv(sign, sign_weights(RNG, 8, 3, 3, 6)))
    x = dyadic(np.random.default_rng(0), 1, 12, 12, 6) + np.float32(1 / 16)
    assert binary_of(source, x, assume_nonzero=True) == [True]
    assert len(layers_of_bits(model, model.graph.outputs[0], assume_nonzero=True)[1]) == 1


@pytest.mark.parametrize("names", [["zeros", "ones"], ["zeros", "max"], ["zeros", "mean"], ["zeros", "by channels"]])
def test_zeros_of_padding_that_cannot_pad_the_sign_keep_it_float(names: list[str]) -> None:
    model = FloatModel()
    source = model.finish(of_sign(model, padded(model, names), "conv"))
    x = np.random.default_rng(0).standard_normal((1, 12, 12, 6)).astype(np.float32)
    assert binary_of(source, x, assume_nonzero=True) == [False]
    reason = "padding stands between the sign and it" if "ones" in names else STAYS_TERNARY
    for assume_nonzero in (False, True):
        _, report = litebnn.convert_tflite(source, assume_nonzero=assume_nonzero, verify=False, return_report=True)
        assert [*report.layers[0].reasons] == [reason]


def test_padding_before_a_batch_norm_in_front_of_channels() -> None:
    model = FloatModel()
    x = model.op(
        "PAD", [model.input(1, 32, 8, 8), model.const([(0, 0), (0, 0), (1, 1), (1, 1)], np.int32)], (1, 32, 10, 10)
    )
    scaled = model.elementwise("MUL", x, model.const(RNG.uniform(0.5, 2, (1, 32, 1, 1))))
    sign = model.elementwise("SIGN", model.transpose(scaled, 0, 2, 3, 1))
    source = model.finish(model.conv(sign, WEIGHTS))
    x = np.random.default_rng(0).standard_normal((1, 32, 8, 8)).astype(np.float32)
    assert binary_of(source, x, assume_nonzero=True) == [True]


def in_front(model: FloatModel, x: Tensor, amounts: list[tuple[int, int]], value: float = 0.0) -> Tensor:
    """Adds a PADV2 to a tensor with channels in front, and moves them to the end."""
    pads = [(0, 0), (0, 0), *amounts]
    shape = [size + sum(each) for size, each in zip(x.dims, pads, strict=True)]
    padded = model.op("PADV2", [x, model.const(pads, np.int32), model.const(value)], shape)
    return model.transpose(padded, 0, 2, 3, 1)


@pytest.mark.parametrize("value", [0.0, 0.5])
def test_an_exact_zero_is_counted_behind_padding_with_channels_in_front(value: float) -> None:
    """The source as assume_nonzero takes it is not rewritten first, so the transpose is still there."""
    model = FloatModel()
    shifted = model.elementwise(
        "SUB", in_front(model, model.input(1, 32, 8, 8), [(1, 1), (0, 1)], value), model.const(value)
    )
    sign = model.elementwise("SIGN", shifted)
    source = model.finish(model.conv(sign, WEIGHTS))
    x = dyadic(np.random.default_rng(0), 1, 32, 8, 8) + np.float32(1 / 16)
    x[0, 3, 4, 4] = value
    _, report = litebnn.convert_tflite(source, assume_nonzero=True, verify=x, return_report=True)
    assert report.layers[0].binary
    assert [(each.sign, each.zeros) for each in report.verification.exact_zeros] == [(sign.name, 1)]


def test_sums_of_signs_are_told_from_others_behind_transposes_too() -> None:
    """Padding of channels in front keeps sums of signs such; groups are read through a transpose."""
    for groups, words in ((1, "not taken for 1"), (2, "taken for 1")):
        model = FloatModel()
        sign = in_front(model, model.sign(model.input(1, 32, 8, 8)), [(1, 1), (1, 1)])
        x = model.transpose(model.conv(sign, sign_weights(RNG, 32 * groups, 3, 3, 32, alpha=False)), 0, 3, 1, 2)
        signs = in_front(model, model.elementwise("SIGN", x), [(1, 1), (1, 1)])
        source = model.finish(model.conv(signs, sign_weights(RNG, 8, 3, 3, 32)))
        numbers = np.random.default_rng(0).standard_normal((1, 32, 8, 8)).astype(np.float32)
        _, report = litebnn.convert_tflite(source, assume_nonzero=True, verify=numbers, return_report=True)
        assert [layer.binary for layer in report.layers] == [True, True]
        assert any(f": {words}" in line for line in report.warnings)


def test_a_straight_through_estimator_makes_no_levels_of_what_is_before_its_input() -> None:
    """x + (sign(2 * x) - x) has three values. The sign in front of the layer that computes x has not."""
    model = FloatModel()
    first = model.input(1, 8, 8, 32)
    x = model.conv(model.elementwise("SIGN", first), sign_weights(RNG, 32, 3, 3, 32, alpha=False))
    sign = model.elementwise("SIGN", model.elementwise("MUL", x, model.const(2)))
    estimated = model.elementwise("ADD", x, model.elementwise("SUB", sign, x))
    source = model.finish(model.conv(estimated, WEIGHTS))
    numbers = dyadic(np.random.default_rng(0), 1, 8, 8, 32)
    _, report = litebnn.convert_tflite(source, assume_nonzero=True, verify=numbers, return_report=True)
    assert [layer.binary for layer in report.layers] == [True, True]


def sum_of_signs(model: FloatModel, kind: str, channels: int) -> Tensor:
    """Adds sums of signs; those with even numbers of terms are 0 in many places."""
    sign = model.sign(model.input(1, 8, 8, channels))
    if kind == "three signs":
        others = (model.sign(model.input(1, 8, 8, channels)) for _ in range(2))
        return model.elementwise("ADD", model.elementwise("ADD", sign, next(others)), next(others))
    weights = sign_weights(RNG, channels, 3, 3, channels, alpha=kind != "residual")
    layer = model.conv(sign, weights, same=kind in ("padded", "residual"))
    if kind == "residual":
        return model.elementwise("ADD", layer, sign)
    if kind == "batch norm":
        return model.elementwise(
            "ADD", model.elementwise("MUL", layer, model.const(0.5)), model.const(np.zeros(channels))
        )
    if kind == "padded sums":
        return model.pad(layer, [(1, 1), (0, 1)])
    if kind == "pooled":
        return model.max_pool(model.pad(layer, [(1, 1), (1, 1)], -np.inf), 3, 2)
    if kind == "shifted":  # by what the sums are often
        return model.elementwise("SUB", model.const(channels % 2 - 2), layer)
    if kind == "mean":
        return chained(model, layer, ["mean"])
    if kind == "hardtanhs":
        others = model.elementwise("MUL", model.input(1, 8, 8, channels), model.const(64))
        return model.elementwise("SUB", *(model.elementwise("RELU_N1_TO_1", each) for each in (layer, others)))
    if kind == "hardtanh":
        return model.elementwise("RELU_N1_TO_1", layer)
    return layer


KINDS = (
    "plain",
    "shifted",
    "padded",
    "three signs",
    "residual",
    "batch norm",
    "pooled",
    "mean",
    "hardtanh",
    "padded sums",
)


@pytest.mark.parametrize("channels", [31, 32])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("layer", ["padded conv", "dense"])
def test_zeros_of_sums_of_signs_need_no_option(kind: str, channels: int, layer: str) -> None:
    model = FloatModel()
    source = model.finish(of_sign(model, sum_of_signs(model, kind, channels), layer))
    shapes = [each.shape for each in model.graph.inputs]
    x = [dyadic(np.random.default_rng(i), *shape) for i, shape in enumerate(shapes)]
    for assume_nonzero in (False, True):
        assert all(binary_of(source, x, assume_nonzero=assume_nonzero))


def layers_of_bits(model: FloatModel, output: Tensor, **options: bool) -> tuple[list[int], tuple[str, ...]]:
    """Returns the number of input channels of each binary layer, and the warnings."""
    converted, report = litebnn.convert_tflite(model.finish(output), return_report=True, **options)
    layers = (op for op in read_model(converted).ops() if op.name == LCE_BCONV_2D)
    return [bconv_options(op).channels_in for op in layers], tuple(w for w in report.warnings if "assume" in w)


def test_a_sum_of_an_odd_number_of_signs_is_a_sign() -> None:
    for channels, expected in ((31, [31, 31]), (32, [32, 64])):
        model = FloatModel()
        x = model.conv(model.sign(model.input(1, 8, 8, channels)), sign_weights(RNG, channels, 3, 3, channels))
        assert layers_of_bits(model, of_sign(model, x)) == (expected, ())


def test_a_sum_of_signs_with_an_offset_is_taken_for_a_sign_on_request() -> None:
    model = FloatModel()
    bias = np.random.default_rng(0).standard_normal(32)
    x = model.conv(model.sign(model.input(1, 8, 8, 32)), sign_weights(RNG, 32, 3, 3, 32), bias)
    output = of_sign(model, x)
    assert layers_of_bits(model, output) == ([32], ())
    channels, [warning] = layers_of_bits(model, output, assume_nonzero=True)
    assert channels == [32, 32]
    assert warning.endswith("taken for 1 where its input is 0 (assume_nonzero)")


def test_likely_zeros_are_named() -> None:
    """A layer with groups cannot read two signs, so it takes zeros for 1 on request, with a warning."""
    for groups, expected, words in ((1, [32, 64], "not taken for 1"), (2, [32, 64], "taken for 1")):
        model = FloatModel()
        count = 32 * groups
        x = model.conv(model.sign(model.input(1, 8, 8, 32)), sign_weights(RNG, count, 3, 3, 32))
        output = model.conv(model.elementwise("SIGN", x), sign_weights(RNG, 8, 2, 2, 32))
        channels, [warning] = layers_of_bits(model, output, assume_nonzero=True)
        assert channels == expected
        assert f": {words}" in warning
        assert "likely: it is a sum of signs without an offset" in warning


@pytest.mark.parametrize(
    "names", [["flat"], ["doubled", "flat", "max"], ["flat", "TANH"], ["two values", "max"], ["mask", "by channels"]]
)
@pytest.mark.parametrize("layer", ["groups", "padded conv", "depthwise"])
def test_zeros_that_no_option_takes_for_ones(names: list[str], layer: str) -> None:
    """Slopes of 0 make zeros as a ReLU does, and a layer with groups does not take the zeros of a mask for ones."""
    model = FloatModel()
    x = chained(model, model.input(1, 12, 12, 64), names)
    source = model.finish(of_sign(model, x, layer), model.conv(model.sign(model.input(1, 4, 4, 32)), WEIGHTS))
    numbers = np.random.default_rng(0).standard_normal((1, 12, 12, 64)).astype(np.float32)
    binary_of(source, [numbers, samples(1, 4, 4, 32)], assume_nonzero=True, verify=False)


def test_transposed_sums_of_signs_need_no_option() -> None:
    model = FloatModel()
    x = model.transposed_conv(model.sign(model.input(1, 8, 8, 32)), sign_weights(RNG, 8, 3, 3, 32, alpha=False))
    source = model.finish(of_sign(model, x))
    for assume_nonzero in (False, True):
        assert binary_of(source, samples(1, 8, 8, 32), assume_nonzero=assume_nonzero, verify=False) == [True, True]


def test_a_sum_that_is_known_never_to_be_negative_behind_selects() -> None:
    """max(relu(x), x - y) is never negative, which a clamp by selects at -1 does not hide."""
    model = FloatModel()
    x, y = model.input(1, 12, 12, 6), model.input(1, 12, 12, 6)
    clamped, difference = model.elementwise("RELU", x), model.elementwise("SUB", x, y)
    greater = model.elementwise("GREATER", difference, clamped, type="BOOL")
    largest = model.op("SELECT_V2", [greater, difference, clamped], x.dims)
    half, minus_one = model.const(0.5), model.const(-1)
    upper = model.op("SELECT_V2", [model.elementwise("GREATER", largest, half, type="BOOL"), half, largest], x.dims)
    is_low = model.elementwise("LESS", largest, minus_one, type="BOOL")
    source = model.finish(of_sign(model, model.op("SELECT_V2", [is_low, minus_one, upper], x.dims)))
    numbers = [np.random.default_rng(seed).standard_normal(x.shape).astype(np.float32) for seed in (0, 1)]
    for assume_nonzero in (False, True):
        assert binary_of(source, numbers, assume_nonzero=assume_nonzero, verify=False) == [True]


@pytest.mark.parametrize("kind", ["difference", "product", "hard swish"])
def test_zeros_of_activations_on_both_sides_of_zero(kind: str) -> None:
    model = FloatModel()
    x, y = model.input(1, 12, 12, 6), model.input(1, 12, 12, 6)
    clamped = model.elementwise("RELU", y)
    if kind == "difference":
        total = model.elementwise("SUB", model.elementwise("RELU", x), clamped)
    elif kind == "product":
        total = model.elementwise("MUL", x, clamped)
    else:
        total = model.elementwise("HARD_SWISH", model.elementwise("SUB", x, y))
    source = model.finish(of_sign(model, total, "padded conv"))
    for assume_nonzero in (False, True):
        numbers = [np.random.default_rng(seed).standard_normal(x.shape).astype(np.float32) * 3 for seed in (0, 1)]
        assert binary_of(source, numbers, assume_nonzero=assume_nonzero) == [True]
