import numpy as np
import pytest

import litebnn
from litebnn.flatbuffer import read_model
from tests.support.float_models import op_names, sign_weights
from tests.support.quantized_models import EXACT_GRID, Int8Model

Grid = tuple[float, int]


def two_layers(grid: Grid, between: str = "", form: str = "where", *, both: bool = False) -> bytes:
    """An int8 layer of signs whose results, on `grid`, another layer takes the signs of."""
    rng = np.random.default_rng(0)
    model = Int8Model()
    x = model.sign8(model.input8((1 / 16, 3), 1, 6, 6, 32), form, EXACT_GRID)
    bias = (2 * rng.integers(-8, 9, 64) + 1) / 16  # no result is in the middle between two levels
    x = model.conv8(x, sign_weights(rng, 64, 3, 3, 32), bias, grid, same=False, activation="none")
    sign = model.sign8(model.pool8(x) if between == "pool" else x, form, EXACT_GRID)
    if between == "reshape":
        sign = model.reshape8(sign, 1, 16 * 64)
        y = model.dense8(sign, sign_weights(rng, 8, 16 * 64, alpha=False), np.zeros(8), (1.0, 0))
    else:
        weights = sign_weights(rng, 8, 3, 3, 64, alpha=False)
        y = model.conv8(sign, weights, np.zeros(8), (1.0, 0), same=False, activation="none")
    return model.finish(y, *([x] if both else []))


@pytest.mark.usefixtures("library")
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


@pytest.mark.usefixtures("library")
@pytest.mark.parametrize(("grid", "both"), [((0.5, -128), False), ((0.5, 5), True)])
def test_a_grid_that_ends_at_zero_and_levels_that_others_read_stay(grid: Grid, both: bool) -> None:
    source = two_layers(grid, both=both)
    converted = litebnn.convert_tflite(source)
    assert op_names(converted).count("LceQuantize") == 2
    assert [op.output.type for op in read_model(converted).ops() if op.name == "LceBconv2d"] == ["INT8", "INT8"]
