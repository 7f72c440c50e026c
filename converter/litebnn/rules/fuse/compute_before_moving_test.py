import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import litebnn
from litebnn.flatbuffer import read_model
from litebnn.graph import Tensor
from litebnn.rules.binarize.binarize_layers import binarize_layers
from litebnn.rules.binarize.split_transposed_convs import split_transposed_convs
from litebnn.rules.canonical.remove_dead_ops import remove_dead_ops
from litebnn.rules.fuse.compute_before_moving import compute_before_moving
from litebnn.rules.thresholds.recognize_signs import recognize_signs
from tests.support.float_models import FloatModel, assert_same_values, dyadic, op_names, rewritten, sign_weights

ON_CHANNELS = ["MUL", "ADD", "SUB", "RSUB", "RELU"]


def batch_norm(model: FloatModel, rng: np.random.Generator, x: Tensor) -> Tensor:
    scaled = model.elementwise("MUL", x, model.const(rng.choice([-2.0, 0.5, 1.0], x.channels)))
    return model.elementwise("ADD", scaled, model.const(dyadic(rng, x.channels)))


def transposed(channels: int, taps: int, *, twice: bool = False) -> bytes:
    """Makes two binary layers with a batch norm between them. The first is a transposed convolution, perhaps read
    twice."""
    rng = np.random.default_rng(0)
    model = FloatModel()
    x = model.sign(model.input(1, 4, 5, 32))
    x = batch_norm(model, rng, model.transposed_conv(x, sign_weights(rng, channels, taps, taps, 32)))
    y = model.conv(model.sign(x), sign_weights(rng, 8, 1, 1, channels))
    return model.finish(y, x) if twice else model.finish(y)


@settings(max_examples=20)
@given(st.sampled_from([32, 64, 40, 3]), st.integers(2, 5), st.booleans())
def test_results_stay_and_bits_are_interleaved_where_words_are_whole(channels: int, taps: int, twice: bool) -> None:
    source = transposed(channels, taps, twice=twice)
    result = litebnn.convert_tflite(source)
    sample = dyadic(np.random.default_rng(taps), 1, 4, 5, 32)
    expected, actual = (litebnn.Interpreter(model).predict(sample) for model in (source, result))
    for left, right in zip(*((each if twice else [each]) for each in (expected, actual)), strict=True):
        np.testing.assert_array_equal(left, right)
    names = op_names(result)
    assert {"MUL", "ADD"}.isdisjoint(names) or twice or channels % 32
    if channels % 32 == 0 and not twice:
        assert names.count("LceQuantize") == 1


@settings(max_examples=40)
@given(st.sampled_from([32, 40]), st.lists(st.sampled_from(ON_CHANNELS), max_size=4), st.data())
def test_signs_of_sums_right_at_the_threshold(channels: int, ops: list[str], data: st.DataObject) -> None:
    rng = np.random.default_rng(data.draw(st.integers(0, 2**16)))
    model = FloatModel()
    # Dot products of 8 signs have only nine possible values. Half of the thresholds are equal to such a value, so that
    # many comparisons are between equal numbers.
    x = model.transposed_conv(model.sign(model.input(1, 4, 5, 8)), sign_weights(rng, channels, 2, 2, 8, alpha=False))
    for name in ops:
        constants = model.const(rng.choice([-2.0, -1.0, 0.5, 1.0, 2.0], channels))
        if name == "RELU":
            x = model.elementwise("RELU", x)
        else:
            x = model.elementwise(name[-3:], *((constants, x) if name == "RSUB" else (x, constants)))
    form = data.draw(st.sampled_from(["where_ge", "where_gt", "where_lt"]))
    source = model.finish(model.conv(model.sign(x, form), sign_weights(rng, 8, 1, 1, channels)))
    result = litebnn.convert_tflite(source)
    sample = dyadic(rng, 1, 4, 5, 8)
    expected, actual = (litebnn.Interpreter(each).predict(sample) for each in (source, result))
    np.testing.assert_array_equal(actual, expected)


def test_what_works_on_channels_goes_to_each_phase() -> None:
    source = transposed(32, 3)
    passes = (recognize_signs, split_transposed_convs, binarize_layers, remove_dead_ops)
    before, after = (rewritten(source, *passes, *[compute_before_moving] * times) for times in (0, 9))
    assert op_names(before).count("MUL") == 1
    assert op_names(after).count("MUL") == 4
    assert_same_values(source, after)


def test_what_others_read_or_floats_computed_stays() -> None:
    rng = np.random.default_rng(0)
    passes = (recognize_signs, split_transposed_convs, binarize_layers, remove_dead_ops)
    for twice in (False, True):
        model = FloatModel()
        x = model.transposed_conv(model.sign(model.input(1, 4, 4, 32)), sign_weights(rng, 32, 2, 2, 32))
        y = model.elementwise("RELU", x)
        moved = op_names(rewritten(model.finish(y, x) if twice else model.finish(y), *passes, compute_before_moving))
        assert moved[-2:] == (["DEPTH_TO_SPACE", "RELU"] if twice else ["RELU", "DEPTH_TO_SPACE"])
    model = FloatModel()
    x = model.input(1, 4, 4, 32)
    both = model.op("CONCATENATION", [model.elementwise("RELU", x), model.sign(x)], (1, 4, 4, 64), axis=3)
    source = model.finish(model.elementwise("RELU6", both))
    assert op_names(rewritten(source, compute_before_moving))[-2:] == ["CONCATENATION", "RELU6"]


@pytest.mark.parametrize("same", [False, True])
@pytest.mark.parametrize("form", ["where_ge", "0 and 1"])
def test_the_bits_of_a_transposed_convolution_are_cropped(form: str, same: bool) -> None:
    """The transposed convolution becomes four convolutions, its phases, which all read the same sign, with or without
    padding. Without SAME padding, height and width of the output are odd, so the bits of the phases are cropped.
    """
    rng = np.random.default_rng(0)
    model = FloatModel()

    def signs(x: Tensor) -> Tensor:
        return model.two_values(x) if form == "0 and 1" else model.sign(x, form)

    x = model.transposed_conv(signs(model.input(1, 4, 5, 32)), sign_weights(rng, 32, 3, 3, 32), same=same)
    source = model.finish(model.conv(signs(x), sign_weights(rng, 8, 3, 3, 32)))
    result = litebnn.convert_tflite(source)
    assert_same_values(source, read_model(result))
    ops = read_model(result).graphs[0].ops
    assert [op.output.type for op in ops if op.name == "STRIDED_SLICE"] == ["INT32"] * (not same)
    assert [op.output.type for op in ops if op.name == "LceBconv2d"] == ["INT32"] * 4 + ["FLOAT32"]
    assert [op.name for op in ops].count("LceQuantize") == 1
