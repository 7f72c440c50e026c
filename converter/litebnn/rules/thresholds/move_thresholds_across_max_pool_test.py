import numpy as np
import pytest

import litebnn
from litebnn.flatbuffer import read_model, write_model
from litebnn.graph import Tensor
from litebnn.rules.build.int8 import int8_constant
from litebnn.rules.build.notes import Notes
from litebnn.rules.thresholds.lower_thresholds import lower_thresholds
from litebnn.rules.thresholds.move_thresholds import move_thresholds
from tests.support.float_models import (
    FloatModel,
    assert_same_values,
    binarized,
    dyadic,
    op_names,
    run_pass,
    sign_weights,
)

RNG = np.random.default_rng(0)
IN_BITS = ["LceQuantize", "LceBconv2d", "LceBMaxPool2d", "LceBconv2d"]


def after_passes(model: FloatModel, *outputs: object) -> tuple[list[str], Notes]:
    built, notes = binarized(model, *outputs)  # type: ignore[arg-type]
    return op_names(built), notes


def conv_pool_norm_sign(model: FloatModel, scale: float, *steps: str) -> object:
    x = model.conv(model.sign(model.input(1, 9, 9, 32)), sign_weights(RNG, 32, 3, 3, 32, alpha=False))
    x = model.max_pool(x, 2, 2, activation="relu" if "fused relu" in steps else "none")
    x = model.elementwise("RELU", x) if "relu" in steps else x
    x = model.elementwise("MUL", x, model.const(np.where(np.arange(32) == 5, scale, 2)))
    return model.sign(model.elementwise("ADD", x, model.const(RNG.standard_normal(32))))


@pytest.mark.parametrize("scale", [1.0, -1.0, 0.0])
@pytest.mark.parametrize("steps", [(), ("relu",), ("fused relu",)])
def test_conv_pool_norm_sign_conv_stays_in_bits(scale: float, steps: tuple[str, ...]) -> None:
    model = FloatModel()
    x = conv_pool_norm_sign(model, scale, *steps)
    names, _ = after_passes(model, model.conv(x, sign_weights(RNG, 8, 3, 3, 32)))  # type: ignore[arg-type]
    assert names == IN_BITS


@pytest.mark.parametrize("scale", [np.nan, np.inf])
def test_what_is_no_number_stays_float(scale: float) -> None:
    model = FloatModel()
    x = conv_pool_norm_sign(model, scale)
    names, _ = after_passes(model, model.conv(x, sign_weights(RNG, 8, 3, 3, 32)))  # type: ignore[arg-type]
    assert "MAX_POOL_2D" in names


def test_a_negative_scale_before_one_padding_stays_float() -> None:
    for scale, expected in ((1.0, IN_BITS), (0.0, IN_BITS), (-1.0, None)):
        model = FloatModel()
        x = model.pad(conv_pool_norm_sign(model, scale), [(1, 1), (1, 1)], 1.0)  # type: ignore[arg-type]
        names, notes = after_passes(model, model.conv(x, sign_weights(RNG, 8, 3, 3, 32)))
        if expected is None:
            assert "MAX_POOL_2D" in names
            assert "pads with ones" in " ".join(notes.layers[0].reasons)
        else:
            assert names == expected


def test_a_negative_scale_before_zero_padding_is_absorbed() -> None:
    model = FloatModel()
    x = conv_pool_norm_sign(model, -1.0)
    names, _ = after_passes(model, model.conv(x, sign_weights(RNG, 8, 3, 3, 32), same=True))  # type: ignore[arg-type]
    assert names == IN_BITS


def test_a_float_conv_takes_the_threshold_into_its_bias() -> None:
    model = FloatModel()
    x = model.conv(model.input(1, 9, 9, 3), RNG.standard_normal((32, 3, 3, 3)).astype(np.float32))
    x = model.max_pool(x, 2, 2)
    x = model.elementwise("ADD", model.elementwise("MUL", x, model.const(np.full(32, 3.0))), model.const(np.arange(32)))
    names, _ = after_passes(model, model.conv(model.sign(x), sign_weights(RNG, 8, 3, 3, 32)))
    assert names == ["CONV_2D", "LceQuantize", "LceBMaxPool2d", "LceBconv2d"]


def test_pooling_that_others_read_stays() -> None:
    model = FloatModel()
    x = model.max_pool(model.conv(model.sign(model.input(1, 9, 9, 32)), sign_weights(RNG, 32, 3, 3, 32)), 2, 2)
    names, _ = after_passes(model, model.conv(model.sign(x), sign_weights(RNG, 8, 3, 3, 32)), x)
    assert names == ["LceQuantize", "LceBconv2d", "MAX_POOL_2D", "LceQuantize", "LceBconv2d"]


def test_a_strict_threshold_is_not_lost_in_a_sum_with_the_bias() -> None:
    """If the dot product is -3.5, x = dot + 1.625 is equal to the threshold of x <= -1.875. The opposite of this
    comparison is x >= the next float above -1.875. If this float were subtracted from the bias 1.625, the difference
    would be rounded to 3.5, and the sign for -3.5 would be wrong.
    """
    model = FloatModel()
    x = model.conv(model.input(1, 4, 4, 32), np.ones((32, 1, 1, 32)), np.full(32, 1.625))
    sign = model.sign(model.max_pool(x, 2, 2), "where_le", -1.875)
    source = model.finish(model.conv(sign, sign_weights(np.random.default_rng(0), 8, 2, 2, 32)))
    tie = np.zeros((1, 4, 4, 32), np.float32)
    tie[..., 0] = -3.5
    expected, actual = (litebnn.Interpreter(each).predict(tie) for each in (source, litebnn.convert_tflite(source)))
    np.testing.assert_array_equal(actual, expected)


def test_a_strict_threshold_after_another_op_is_not_lost_in_the_sums_of_a_layer() -> None:
    """A runtime starts each sum of a layer with the bias. If the threshold (the float just above 0.5) moved into the
    bias, adding larger products could round it to 0.5.
    """
    rng = np.random.default_rng(10_207)
    model = FloatModel()
    x = model.conv(model.input(2, 6, 6, 64), dyadic(rng, 64, 1, 1, 64), dyadic(rng, 64))
    x = model.max_pool(x, 2, 2)
    x = model.op("LEAKY_RELU", [x], x.dims, alpha=0.25)
    source = model.finish(model.conv(model.sign(x, "where_gt", 0.5), sign_weights(rng, 8, 1, 1, 64)))
    result = read_model(litebnn.convert_tflite(source))
    assert "MAX_POOL_2D" not in op_names(result)
    for largest in (1, 2, 4):
        sample = dyadic(rng, 2, 6, 6, 64, largest=largest)
        expected, actual = (litebnn.Interpreter(each).predict(sample) for each in (source, write_model(result)))
        np.testing.assert_array_equal(actual, expected)


@pytest.mark.parametrize("channels", [8, 64])
@pytest.mark.parametrize("scale", [2.0, 0.0, -2.0])
def test_bits_are_padded_with_what_is_below_all_numbers(scale: float, channels: int) -> None:
    """Makes a PyTorch pool with explicit padding before a batch norm."""
    rng = np.random.default_rng(0)
    model = FloatModel()
    x = model.conv(model.sign(model.input(1, 8, 8, 32)), sign_weights(rng, channels, 3, 3, 32))
    x = model.max_pool(model.pad(x, [(1, 1), (1, 1)], -np.inf), 3, 2)
    x = model.elementwise("MUL", x, model.const(np.where(np.arange(channels) % 3, 1.5, scale)))
    x = model.elementwise("ADD", x, model.const(rng.standard_normal(channels)))
    source = model.finish(model.conv(model.sign(x), sign_weights(rng, 8, 2, 2, channels)))
    converted = litebnn.convert_tflite(source)
    assert op_names(converted) == ["LceQuantize", "LceBconv2d", "PADV2", "LceBMaxPool2d", "LceBconv2d"]
    assert_same_values(source, read_model(converted))


@pytest.mark.parametrize(("channels", "value"), [(32, 0.0), (32, -1e30), (40, -np.inf)])
def test_other_padding_before_a_pool_stays(channels: int, value: float) -> None:
    model = FloatModel()
    x = model.conv(model.sign(model.input(1, 8, 8, 32)), sign_weights(RNG, channels, 3, 3, 32))
    x = model.max_pool(model.pad(x, [(1, 1), (1, 1)], value), 3, 2)
    x = model.elementwise("MUL", x, model.const(np.full(channels, 2.0)))
    names, _ = after_passes(model, model.conv(model.sign(x), sign_weights(RNG, 8, 2, 2, channels)))
    assert names[:3] == ["LceQuantize", "LceBconv2d", "PADV2"]
    assert "LceBMaxPool2d" in names or "MAX_POOL_2D" in names
    assert names.count("LceQuantize") == 2


def pooled_layer(model: FloatModel, case: str = "", scale: float = 3.0, shift: float = 0.5) -> Tensor:
    """Makes the signs of a float layer's outputs after a pool, a scale and a shift."""
    x = model.input(1, 6, 6, 8)
    if case == "depthwise":
        x = model.depthwise_conv(x, dyadic(RNG, 1, 3, 3, 32), dyadic(RNG, 32), same=False)
    else:
        x = model.conv(x, dyadic(RNG, 32, 3, 3, 8), dyadic(RNG, 32), activation="relu" if case == "relu" else "none")
    layer = model.graph.ops[-1]
    if case == "int8 weights":
        model.graph.set_input(layer, 1, int8_constant("kernel", np.ones((32, 3, 3, 8)), 1 / 127))
    if case == "no bias":
        layer.inputs = layer.inputs[:2]
    if case == "computed bias":
        model.graph.set_input(layer, 2, model.input(32))
    if case == "activation between":
        x = model.elementwise("RELU", x)
    x = model.max_pool(x, 2, 2)
    if case == "pool read":
        model.elementwise("RELU", x)
    shifts = model.const(np.where(np.arange(32) % 2, shift, 0.25))
    x = model.elementwise("ADD", model.elementwise("MUL", x, model.const(np.full(32, scale))), shifts)
    return model.packed(x)


@pytest.mark.parametrize("case", ["", "depthwise"])
@pytest.mark.parametrize("is_rounded", [False, True])
def test_a_float_layer_adds_the_threshold_to_its_bias_if_the_source_rounds(case: str, is_rounded: bool) -> None:
    model = FloatModel()
    source = model.finish(pooled_layer(model, case, scale=3.0 if is_rounded else 2.0))
    result = read_model(source)
    run_pass(move_thresholds, result)
    changed, names = run_pass(move_thresholds, result)
    assert (changed, names[1:]) == (True, ["LceQuantize" if is_rounded else "THRESHOLD", "LceBMaxPool2d"])
    run_pass(lower_thresholds, result)
    assert_same_values(source, result)


@pytest.mark.parametrize(
    "case", ["relu", "int8 weights", "no bias", "computed bias", "activation between", "pool read", "output"]
)
def test_a_float_layer_that_cannot_take_the_threshold_is_left_alone(case: str) -> None:
    """Tests cases in which the float layer before a pool cannot absorb the threshold. It has int8 weights or no bias,
    or an op lies between layer and pool."""
    model = FloatModel()
    bits = pooled_layer(model, case)
    pooled = next(op for op in model.graph.ops if op.name == "MAX_POOL_2D")
    outputs = {"output": [pooled.output], "pool read": [op.output for op in model.graph.ops if op.name == "RELU"]}
    built = model.model(bits, *outputs.get(case, []))
    run_pass(move_thresholds, built)
    assert run_pass(move_thresholds, built) == (False, op_names(built))


@pytest.mark.parametrize(
    ("scale", "shift", "moves"),
    [(3.0, 0.5, True), (0.0, 0.5, False), (-3.0, 0.5, False), (1e-30, 1e30, False), (3.0, -1e-9, True)],
)
def test_a_threshold_that_a_bias_cannot_hold_stays(scale: float, shift: float, moves: bool) -> None:
    """In these cases, the threshold cannot move. A scale of zero leaves no threshold, a negative scale turns the
    maximum into a minimum, and sums may overflow."""
    model = FloatModel()
    built = model.model(pooled_layer(model, "", scale, shift))
    run_pass(move_thresholds, built)
    assert run_pass(move_thresholds, built)[0] is moves


def test_a_pool_with_an_activation_of_its_own_stays() -> None:
    model = FloatModel()
    pooled = model.max_pool(model.input(1, 6, 6, 32), 2, 2, activation="relu")
    assert not run_pass(move_thresholds, model.model(model.packed(pooled)))[0]


def test_what_else_reads_the_padding_before_a_pool_keeps_it() -> None:
    for read in (False, True):
        model = FloatModel()
        padded = model.pad(model.input(1, 6, 6, 32), [(1, 1), (1, 1)], -np.inf)
        bits = model.packed(model.max_pool(padded, 3, 2))
        _, names = run_pass(move_thresholds, model.model(bits, *([padded] if read else [])))
        kept = ["PADV2", "LceQuantize", "LceBMaxPool2d"]
        assert names == (kept if read else ["LceQuantize", "PADV2", "LceBMaxPool2d"])


def test_a_threshold_after_what_is_pooled_of_no_layer_stays() -> None:
    model = FloatModel()
    pooled = model.max_pool(model.input(1, 6, 6, 32), 2, 2)
    built = model.model(model.packed(model.elementwise("ADD", pooled, model.const(np.full(32, 0.25)))))
    run_pass(move_thresholds, built)
    assert not run_pass(move_thresholds, built)[0]
