import numpy as np
import pytest

import litebnn
from litebnn.analysis.quantization import parameters, quantized
from litebnn.analysis.thresholds import Threshold, threshold_of
from litebnn.contract import BConv2DOptions, encode_options
from litebnn.flatbuffer import read_model
from litebnn.graph import Op, OpCode, Tensor
from litebnn.rules.build.int8 import int8_constant
from litebnn.rules.build.ops import packed_like
from litebnn.rules.build.signs import sign_op
from litebnn.rules.thresholds.move_thresholds import move_thresholds
from tests.support.float_models import FloatModel, op_names, run_pass, sign_weights
from tests.support.quantized_models import EXACT_GRID, Int8Model

Grid = tuple[float, int]
OPTIONS = encode_options(BConv2DOptions(channels_in=32))


def two_layers(grid: Grid, between: str = "", form: str = "where", *, both: bool = False) -> bytes:
    """Makes an int8 layer whose outputs have the scale and zero point `grid`, and a layer that reads the signs of these
    outputs."""
    rng = np.random.default_rng(0)
    model = Int8Model()
    x = model.sign8(model.input8((1 / 16, 3), 1, 6, 6, 32), form, EXACT_GRID)
    bias = (2 * rng.integers(-8, 9, 64) + 1) / 16  # no result lies halfway between two levels
    x = model.conv8(x, sign_weights(rng, 64, 3, 3, 32), bias, grid, same=False, activation="none")
    sign = model.sign8(model.pool8(x) if between == "pool" else x, form, EXACT_GRID)
    if between == "reshape":
        sign = model.reshape8(sign, 1, 16 * 64)
        y = model.dense8(sign, sign_weights(rng, 8, 16 * 64, alpha=False), np.zeros(8), (1.0, 0))
    else:
        weights = sign_weights(rng, 8, 3, 3, 64, alpha=False)
        y = model.conv8(sign, weights, np.zeros(8), (1.0, 0), same=False, activation="none")
    return model.finish(y, *([x] if both else []))


@pytest.mark.parametrize("between", ["", "pool", "reshape"])
@pytest.mark.parametrize("form", ["where", "where_lt", "where_gt", "where_flat", "zeros_replaced", "ste_sign"])
@pytest.mark.parametrize("grid", [(0.5, 5), (0.75, -127), (1 / 16, 126)])
def test_a_layer_that_signs_read_writes_bits(grid: Grid, form: str, between: str) -> None:
    source = two_layers(grid, between, form)
    converted, report = litebnn.convert_tflite(source, return_report=True)
    assert [layer.output for layer in report.layers] == ["bits", "INT8"]
    x = np.random.default_rng(1).integers(-128, 128, (16, 6, 6, 32)).astype(np.int8)
    expected, actual = (litebnn.Interpreter(model).predict(x) for model in (source, converted))
    np.testing.assert_array_equal(actual, expected)


@pytest.mark.parametrize(("grid", "both"), [((0.5, -128), False), ((0.5, 5), True)])
def test_a_grid_that_ends_at_zero_and_levels_that_others_read_stay(grid: Grid, both: bool) -> None:
    source = two_layers(grid, both=both)
    converted = litebnn.convert_tflite(source)
    assert op_names(converted).count("LceQuantize") == 2
    assert [op.output.type for op in read_model(converted).ops() if op.name == "LceBconv2d"] == ["INT8", "INT8"]


def layer_levels(model: FloatModel, source: str = "LceBconv2d", type: str = "FLOAT32") -> Tensor:
    """Returns the output of a layer, quantized to a grid."""
    x = Tensor("layer", type, (1, 4, 4, 32))
    inputs = [model.packed(model.input(1, 4, 4, 32)), int8_constant("kernel", np.ones((32, 1, 1, 1)), 1.0)]
    model.graph.insert(Op(OpCode("CUSTOM", source), inputs, [x], custom_options=OPTIONS))
    return model.op("QUANTIZE", [x], x.dims, type="INT8")


def packed(model: FloatModel, x: Tensor, threshold: Threshold) -> Tensor:
    return model.graph.insert(sign_op(x, packed_like(x, "bits"), threshold)).output


@pytest.mark.parametrize(
    ("case", "moves"),
    [
        ("", True),
        ("a threshold for each channel", False),
        ("another layer", False),
        ("int8 of a layer", False),
        ("read by others", False),
        ("an op between", False),
        ("no quantize", False),
        ("no grid", False),
        ("above all levels", False),
    ],
)
def test_a_threshold_moves_before_the_rounding_of_a_binary_layer_alone(case: str, moves: bool) -> None:
    model = FloatModel()
    levels = layer_levels(
        model, "Own" if case == "another layer" else "LceBconv2d", "INT8" if "int8" in case else "FLOAT32"
    )
    levels.quantization = None if case == "no grid" else parameters(0.5, 3)
    x = model.op("DEQUANTIZE", [levels], levels.dims)
    if case == "no quantize":
        model.graph.ops[-2].code = OpCode("FLOOR")
    if case == "an op between":
        x = model.op("TANH", [x], x.dims)
    level = np.arange(32) / 4 if "each channel" in case else np.full(1, 100.0 if "above" in case else 1.0)
    bits = packed(model, x, Threshold(level.astype(np.float32)))
    built = model.model(bits, *([levels] if case == "read by others" else []))
    before = op_names(built)
    changed, names = run_pass(move_thresholds, built)
    moved = ["LceQuantize", "LceBconv2d", "THRESHOLD"]
    assert (changed, names) == ((True, moved) if moves else (False, before))


@pytest.mark.parametrize("falls", [False, True])
@pytest.mark.parametrize("level", [-6.0, -2.0, 0.0, 1e-30, 2.0, 4.0])
def test_what_is_in_the_middle_of_two_levels_is_rounded_away_from_zero(level: float, falls: bool) -> None:
    model = FloatModel()
    levels = layer_levels(model)
    levels.quantization = parameters(4.0, 5)
    x = model.op("DEQUANTIZE", [levels], levels.dims)
    found = Threshold(np.full(1, level, np.float32), np.full(1, falls))
    built = model.model(packed(model, x, found))
    assert run_pass(move_thresholds, built)[0]
    moved = threshold_of(built.graphs[0].ops[-1])
    assert moved is not None
    numbers = np.arange(-64, 65, dtype=np.float32) / 4
    rounded = (quantized(numbers, 4.0, 5).astype(np.float32) - 5) * 4
    np.testing.assert_array_equal((numbers >= moved.level) != moved.falls, (rounded >= found.level) != falls)
