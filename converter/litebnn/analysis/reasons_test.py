from typing import Any

import numpy as np
import pytest

import litebnn
from litebnn.analysis.quantization import parameters
from litebnn.analysis.reasons import NO_SIGN, TERNARY, why_no_sign
from litebnn.analysis.signs import find_sign
from litebnn.graph import Tensor
from tests.support.float_models import FloatModel
from tests.support.level_spellings import cast_to_integers, clamped_last, clamped_last_by_selects, truncated


def test_the_quantizer_is_named() -> None:
    model = FloatModel()
    x = model.input(1, 4, 4, 32)
    levels = model.elementwise("MUL", model.op("ROUND", [x], x.dims), model.const(1 / 3))
    heaviside = model.elementwise("SIGN", model.elementwise("RELU", x))
    flag = model.op("CAST", [model.elementwise("LESS", x, model.const(0), type="BOOL")], x.dims)
    scales = np.arange(1, 33)
    condition = model.elementwise("GREATER", x, model.const(0), type="BOOL")
    scaled = model.op("SELECT_V2", [condition, model.const(scales), model.const(-scales)], x.dims)
    # The constants differ between channels, so their SIGN is not known to take only two numbers.
    constants = model.const(np.arange(-256, 256).reshape(x.dims) % 100, np.int8)
    constants.quantization = parameters(1.0, 0)
    for tensor, reason in (
        (levels, "DoReFa"),
        (heaviside, "two values"),
        (model.pad(model.elementwise("SIGN", x), [(1, 1), (1, 1)]), "ternary"),
        (model.elementwise("SIGN", model.op("DEQUANTIZE", [constants], x.dims)), "ternary"),
        (flag, "two values"),
        (scaled, "differ between channels"),
        (model.transpose(scaled, 0, 2, 1, 3), "differ between channels"),
        (
            model.elementwise("ROUND", model.elementwise("RELU", model.elementwise("MINIMUM", x, model.const(0.2)))),
            "is 0,",
        ),
        (model.elementwise("RELU", x), NO_SIGN),
        (x, NO_SIGN),
        (model.const(np.ones(3)), NO_SIGN),
    ):
        assert reason in why_no_sign(model.graph, tensor)


@pytest.mark.parametrize(("grid", "told"), [((1 / 127, 0), True), ((1.0, -128), False), ((4.0, 0), False)])
def test_a_grid_that_does_not_hold_the_three_values_of_a_sign_is_named(grid: tuple[float, int], told: bool) -> None:
    model = FloatModel()
    x = model.input(1, 4, 4, 32)
    ternary = model.op("QUANTIZE", [model.elementwise("SIGN", x)], x.dims, type="INT8")
    ternary.quantization = parameters(*grid)
    shifted = model.elementwise("ADD", model.op("DEQUANTIZE", [ternary], x.dims), model.const(0.1))
    sign = model.elementwise("SIGN", shifted)
    assert (find_sign(model.graph, sign) is not None) == told
    if not told:
        assert f'the grid of "{ternary.name}" does not tell the three' in why_no_sign(model.graph, sign)


def test_a_grid_is_not_blamed_that_holds_the_three_values_of_a_sign() -> None:
    model = FloatModel()
    x = model.input(1, 4, 4, 32)
    ternary = model.op("QUANTIZE", [model.elementwise("SIGN", x)], x.dims, type="INT8")
    ternary.quantization = parameters(1.0, 0)
    sign = model.elementwise("SIGN", model.op("DEQUANTIZE", [ternary], x.dims))
    assert why_no_sign(model.graph, sign) == TERNARY


@pytest.mark.filterwarnings("ignore:no binary layer")
@pytest.mark.parametrize("activation", ["none", "relu", "relu6"])
@pytest.mark.parametrize("factor", [1.0, 2.0])
@pytest.mark.parametrize("layer", ["binary", "float"])
def test_the_activation_of_a_pool_of_signs_is_named(layer: str, factor: float, activation: str) -> None:
    model, rng = FloatModel(), np.random.default_rng(0)
    signs = model.elementwise("MUL", model.sign(model.input(1, 8, 8, 32)), model.const(factor))
    weights = rng.choice([-1.0, 1.0], (8, 3, 3, 32)) if layer == "binary" else rng.standard_normal((8, 3, 3, 32))
    source = model.finish(model.conv(model.max_pool(signs, 2, 2, activation=activation), weights))
    _, report = litebnn.convert_tflite(source, return_report=True)
    [found] = report.layers
    assert found.binary == (layer == "binary" and activation == "none")
    if activation != "none":
        assert list(found.reasons) == ["the activation of MAX_POOL_2D stands between the sign and it"]
    assert NO_SIGN not in found.reasons


@pytest.mark.parametrize("spelling", [clamped_last, clamped_last_by_selects, truncated, cast_to_integers])
def test_more_than_four_levels_are_named_however_they_are_written(spelling: Any) -> None:
    model = FloatModel()
    x = model.input(1, 4, 4, 32)
    eight = spelling(model, x, 7)
    assert why_no_sign(model.graph, eight) == "its input takes 8 levels, more than 4"
    channels = model.elementwise("MUL", eight, model.const(1 + np.arange(32)))
    assert why_no_sign(model.graph, channels) == "MUL stands between the sign and it"


def mean_over(model: FloatModel, x: Tensor, *axes: int) -> Tensor:
    shape = [1 if axis in axes else size for axis, size in enumerate(x.dims)]
    return model.op("MEAN", [model.elementwise("ABS", x), model.const(axes, np.int32)], shape, keep_dims=True)


@pytest.mark.parametrize("axes", [(3,), (1, 2)])
def test_a_scale_that_differs_within_a_sum_is_named(axes: tuple[int, ...]) -> None:
    model = FloatModel()
    x = model.input(1, 4, 4, 32)
    scale = mean_over(model, x, *axes)
    condition = model.elementwise("GREATER", x, model.const(0), type="BOOL")
    for scaled in (
        model.elementwise("MUL", model.sign(x), scale),
        model.elementwise("MUL", scale, model.two_values(x)),
        model.op("SELECT_V2", [condition, scale, model.elementwise("NEG", scale)], x.dims),
    ):
        padded = model.pad(scaled, [(1, 1), (1, 1)])
        assert "differs between the inputs of a sum" in why_no_sign(model.graph, padded)
    pooled = model.max_pool(model.elementwise("MUL", model.sign(x), scale), 2, 2)
    assert why_no_sign(model.graph, pooled) == "MUL stands between the sign and it"


@pytest.mark.parametrize(
    ("levels", "reason"),
    [
        (4, "its input takes 5 levels, more than 4"),
        (255, "its input takes 256 levels, more than 4"),
        (1000, "its input takes several levels"),
    ],
)
def test_levels_are_counted(levels: int, reason: str) -> None:
    model = FloatModel()
    scaled = model.elementwise("MUL", model.elementwise("RELU_0_TO_1", model.input(1, 4, 4, 32)), model.const(levels))
    rounded = model.elementwise("MUL", model.elementwise("ROUND", scaled), model.const(1 / levels))
    assert reason in why_no_sign(model.graph, model.pad(rounded, [(1, 1), (1, 1)]))


def test_levels_of_comparisons_are_counted() -> None:
    model = FloatModel()
    x = model.input(1, 4, 4, 32)
    above = [
        model.op("CAST", [model.elementwise("GREATER", x, model.const(level), type="BOOL")], x.dims)
        for level in range(4)
    ]
    five = above[0]
    for flag in above[1:]:
        five = model.elementwise("ADD", five, flag)
    uneven = model.elementwise("ADD", above[0], model.elementwise("MUL", above[1], model.const(3.5)))
    assert why_no_sign(model.graph, five) == "its input takes 5 levels, more than 4"
    assert why_no_sign(model.graph, uneven) == "its input takes 3 levels that are not evenly spaced"


def test_another_value_at_one_number_is_no_zero_of_a_sign() -> None:
    model = FloatModel()
    x = model.input(1, 4, 4, 32)
    is_zero = model.elementwise("EQUAL", x, model.const(0), type="BOOL")
    five = model.op("SELECT_V2", [is_zero, model.const(5), model.elementwise("SIGN", x)], x.dims)
    assert why_no_sign(model.graph, five) == "its input takes 3 levels that are not evenly spaced"
    ternary = model.elementwise("MUL", model.elementwise("SIGN", x), model.const(-3))
    assert "assume_nonzero" in why_no_sign(model.graph, ternary)


def test_the_second_operand_and_every_part_are_followed() -> None:
    model = FloatModel()
    x = model.input(1, 4, 4, 32)
    signs, ternary = model.sign(x), model.elementwise("SIGN", x)
    product = model.elementwise("MUL", model.const(np.arange(32)), signs)
    assert why_no_sign(model.graph, product) == "MUL stands between the sign and it"
    assert "assume_nonzero" in why_no_sign(model.graph, model.concatenated(ternary, ternary))
    assert why_no_sign(model.graph, model.concatenated(signs, ternary)) == "CONCATENATION joins signs with other values"
    assert why_no_sign(model.graph, model.concatenated(signs, x)) == NO_SIGN


def averaged(model: FloatModel, x: Tensor) -> Tensor:
    pooled = (x.dims[0], x.dims[1] // 2, x.dims[2] // 2, x.channels)
    window = {"stride_h": 2, "stride_w": 2, "filter_height": 2, "filter_width": 2}
    return model.op("AVERAGE_POOL_2D", [x], pooled, padding=1, fused_activation_function=0, **window)


@pytest.mark.parametrize("name", ["ELU", "LEAKY_RELU", "LOGISTIC", "PRELU", "AVERAGE_POOL_2D"])
def test_ops_that_compute_other_values_of_a_sign_are_named(name: str) -> None:
    model = FloatModel()
    signs = model.max_pool(model.sign(model.input(1, 8, 8, 32)), 2, 2)
    if name == "AVERAGE_POOL_2D":
        changed = averaged(model, signs)
    elif name == "PRELU":
        changed = model.elementwise(name, signs, model.const(np.arange(1, 33) / 32))
    else:
        changed = model.elementwise(name, signs)
    assert why_no_sign(model.graph, model.pad(changed, [(1, 1), (1, 1)])) in (
        f"{name} stands between the sign and it",
        "its input takes two values that are not ±1",
    )
