import numpy as np
import pytest

import litebnn
from litebnn.analysis.quantization import parameters
from litebnn.flatbuffer import read_model
from litebnn.graph import Tensor
from litebnn.rules.build.int8 import int8_constant
from litebnn.rules.canonical.sink_layouts import sink_layouts
from litebnn.rules.phases import rules_of
from tests.support.float_models import FloatModel, assert_same_values, op_names, rewritten, run_pass, sign_weights
from tests.support.quantized_models import EXACT_GRID, USUAL_GRID, Int8Model


def transpose(model: FloatModel, x: Tensor, *order: int) -> Tensor:
    return model.op("TRANSPOSE", [x, model.const(order, np.int32)], [x.dims[axis] for axis in order])


def conv1d(model: FloatModel, between: str) -> Tensor:
    """Makes the ops between two Conv1Ds with 10 positions and 8 channels."""
    x = model.reshape(transpose(model, model.input(1, 1, 10, 8), 0, 3, 1, 2), 1, 8, 10)
    if between == "norm":
        x = model.elementwise("MUL", x, model.const(np.arange(8).reshape(1, 8, 1) / 4))
    x = model.elementwise("ADD", x, model.const(0.5))
    if between == "padding":
        x = model.op("PADV2", [x, model.const([(0, 0), (0, 0), (1, 2)], np.int32), model.const(1)], (1, 8, 13))
    return transpose(model, model.reshape(x, 1, 8, 1, x.dims[2]), 0, 2, 3, 1)


@pytest.mark.parametrize("between", ["number", "norm", "padding"])
def test_nothing_is_left_of_the_layout_between_two_conv1ds(between: str) -> None:
    model = FloatModel()
    source = model.finish(model.max_pool(conv1d(model, between), 1, 1))
    passes = (sink_layouts, sink_layouts)
    result = rewritten(source, *passes, *passes, *passes, *passes, *rules_of("tidy"))
    assert not {"TRANSPOSE", "RESHAPE"} & set(op_names(result))
    assert_same_values(source, result)


def test_a_reshape_of_a_boolean_goes_after_the_select() -> None:
    model = FloatModel()
    condition = model.elementwise("GREATER_EQUAL", model.input(1, 2, 3, 4), model.const(0), type="BOOL")
    flat = model.op("RESHAPE", [condition, model.const((1, 24), np.int32)], (1, 24), type="BOOL")
    source = model.finish(model.op("SELECT_V2", [flat, model.const(1), model.const(-1)], (1, 24)))
    result = rewritten(source, sink_layouts, *rules_of("tidy"))
    assert op_names(result) == ["GREATER_EQUAL", "SELECT_V2", "RESHAPE"]
    assert_same_values(source, result)


def test_a_reshape_before_an_int8_select_leaves_its_values_on_their_grid() -> None:
    model = Int8Model()
    signs = model.sign8(model.input8((1 / 16, -40), 1, 6, 6, 32), "where_flat", EXACT_GRID)
    weights = sign_weights(np.random.default_rng(0), 8, 3, 3, 32)
    source = model.finish(model.conv8(signs, weights, np.arange(8) / 8, (1 / 8, 3), same=True, activation="none"))
    assert_same_values(source, rewritten(source, sink_layouts, *rules_of("tidy")))
    converted = litebnn.convert_tflite(source)
    assert "LceBconv2d" in op_names(converted)
    assert_same_values(source, read_model(converted))


def test_a_reshape_of_a_boolean_goes_after_all_that_makes_a_sign_of_it() -> None:
    model = FloatModel()
    condition = model.elementwise("GREATER_EQUAL", model.input(1, 14, 4), model.const(0), type="BOOL")
    folded = model.op("RESHAPE", [condition, model.const((2, 7, 4), np.int32)], (2, 7, 4), type="BOOL")
    doubled = model.elementwise("MUL", model.elementwise("CAST", folded), model.const(2))
    source = model.finish(model.reshape(model.elementwise("SUB", doubled, model.const(1)), 14, 4))
    passes = [sink_layouts] * 4
    result = rewritten(source, *passes, *rules_of("tidy"))
    assert op_names(result) == ["GREATER_EQUAL", "CAST", "MUL", "SUB", "RESHAPE"]
    assert_same_values(source, result)


def test_a_reshape_of_a_boolean_goes_after_all_that_makes_an_int8_sign_of_it() -> None:
    """In a Conv1D that TensorFlow has quantized, the sign has the form 2 · cast - 1 of a boolean. Every op has its
    own scale and zero point.
    """
    model = Int8Model()
    x = model.input8((1 / 16, -40), 1, 1, 12, 32)
    condition = model.elementwise("GREATER_EQUAL", x, int8_constant("zero", np.zeros(()), 1e-9), type="BOOL")
    rows = model.op("RESHAPE", [condition, model.const((1, 12, 32), np.int32)], (1, 12, 32), type="BOOL")
    signs = model.quantize8(model.elementwise("CAST", rows), (2 / 255, -128))
    for name, number, grid in (("MUL", 2.0, (3 / 255, -43)), ("SUB", 1.0, USUAL_GRID)):
        constant = int8_constant(name, np.full((), number), number / 127)
        signs = model.op(name, [signs, constant], rows.dims, type="INT8", version=2, fused_activation_function=0)
        signs.quantization = parameters(*grid)
    x = model.reshape8(signs, 1, 1, 12, 32)
    weights = sign_weights(np.random.default_rng(0), 8, 1, 3, 32)
    source = model.finish(model.conv8(x, weights, np.arange(8) / 8, (1 / 2, 3), same=False, activation="none"))
    result = rewritten(source, *[sink_layouts] * 5, *rules_of("tidy"))
    assert op_names(result) == ["GREATER_EQUAL", "CAST", "QUANTIZE", "MUL", "SUB", "CONV_2D"]
    assert_same_values(source, result)
    assert "LceBconv2d" in op_names(litebnn.convert_tflite(source))


def test_a_reshape_stays_before_grids_of_channels() -> None:
    model = FloatModel()
    condition = model.elementwise("GREATER_EQUAL", model.input(1, 2, 3, 4), model.const(0), type="BOOL")
    flat = model.op("RESHAPE", [condition, model.const((6, 4), np.int32)], (6, 4), type="BOOL")
    levels = model.op("QUANTIZE", [model.elementwise("CAST", flat)], (6, 4), type="INT8")
    levels.quantization = parameters(np.arange(1, 5) / 8, axis=1)
    result = rewritten(model.finish(levels), *[sink_layouts] * 3, *rules_of("tidy"))
    assert op_names(result) == ["GREATER_EQUAL", "CAST", "RESHAPE", "QUANTIZE"]


def test_other_reshapes_and_constants_of_another_shape_stay() -> None:
    model = FloatModel()
    relu = model.elementwise("RELU", model.reshape(model.input(1, 2, 3, 4), 1, 24))
    condition = model.elementwise("GREATER_EQUAL", model.input(1, 2, 3, 4), model.const(0), type="BOOL")
    flat = model.op("RESHAPE", [condition, model.const((1, 24), np.int32)], (1, 24), type="BOOL")
    picked = model.op("SELECT_V2", [flat, model.const(np.arange(24)), model.const(-1)], (1, 24))
    changed, _ = run_pass(sink_layouts, model.model(relu, picked))
    assert not changed


def test_a_reshape_to_two_unknown_sizes_is_not_merged() -> None:
    """The shape of a reshape can be constant only if at most one size is unknown. Here two sizes are unknown, so the
    shape stays an operand that is computed at run time."""
    model = FloatModel()
    condition = model.elementwise("GREATER_EQUAL", model.input(1, 2, 3, 4), model.const(0), type="BOOL")
    flat = model.op("RESHAPE", [condition, model.const((1, 24), np.int32)], (1, 24), type="BOOL")
    computed = model.op("RESHAPE", [flat, model.input(2, type="INT32")], (-1, -1), type="BOOL")
    changed, names = run_pass(sink_layouts, model.model(computed))
    assert not changed
    assert names == ["GREATER_EQUAL", "RESHAPE", "RESHAPE"]
