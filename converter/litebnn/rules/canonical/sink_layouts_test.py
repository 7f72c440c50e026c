import numpy as np
import pytest

from litebnn.graph import Tensor
from litebnn.rules.build.int8 import int8_constant
from litebnn.rules.build.notes import Notes
from litebnn.rules.canonical.sink_layouts import sink_layouts
from litebnn.rules.phases import rules_of, run_phases
from tests.support.float_models import FloatModel, assert_same_values, op_names, rewritten, run_pass

TO_CHANNELS_FIRST, TO_CHANNELS_LAST = (0, 3, 1, 2), (0, 2, 3, 1)


def transpose(model: FloatModel, x: Tensor, order: tuple[int, ...]) -> Tensor:
    dims = [x.dims[axis] for axis in order]
    return model.op("TRANSPOSE", [x, model.const(order, np.int32)], dims, type=x.type)


def first(model: FloatModel) -> Tensor:
    """Makes an image with channels first."""
    return transpose(model, model.input(1, 4, 6, 8), TO_CHANNELS_FIRST)


def body(model: FloatModel, kind: str) -> Tensor:
    x = first(model)
    if kind == "scalar":
        return model.elementwise("RELU", model.elementwise("MUL", x, model.const(0.5)))
    if kind == "channels":
        return model.elementwise("ADD", x, model.const(np.arange(8).reshape(8, 1, 1)))
    if kind == "two":
        return model.elementwise("SUB", x, first(model))
    if kind == "slopes":
        return model.op("PRELU", [x, model.const(np.arange(8).reshape(1, 8, 1, 1) / 4)], x.dims)
    if kind == "select":
        condition = model.elementwise("GREATER_EQUAL", x, model.const(0), type="BOOL")
        return model.op("SELECT_V2", [condition, model.const(1), model.const(-1)], x.dims)
    if kind == "concatenation":
        return model.op("CONCATENATION", [x, first(model)], (1, 16, 4, 6), axis=1)
    if kind == "padding":
        amounts = model.const([(0, 0), (0, 0), (1, 2), (3, 0)], np.int32)
        return model.op("PAD", [x, amounts], (1, 8, 7, 9))
    squeezed = model.op("MEAN", [x, model.const([2, 3], np.int32)], (1, 8, 1, 1), keep_dims=True)
    return model.elementwise("MUL", x, squeezed)


@pytest.mark.parametrize("kind", ["scalar", "channels", "two", "slopes", "select", "concatenation", "padding", "gate"])
def test_what_is_computed_channels_first_is_computed_channels_last(kind: str) -> None:
    model = FloatModel()
    source = model.finish(model.max_pool(transpose(model, body(model, kind), TO_CHANNELS_LAST), 2, 1))
    passes = (sink_layouts,)
    result = rewritten(source, *passes, *passes, *rules_of("tidy"))
    assert "TRANSPOSE" not in op_names(result)
    assert_same_values(source, result)


def test_a_mean_of_positions_needs_no_transpose() -> None:
    model = FloatModel()
    source = model.finish(model.op("MEAN", [first(model), model.const([2, -1], np.int32)], (1, 8)))
    result = rewritten(source, sink_layouts, *rules_of("tidy"))
    assert op_names(result) == ["MEAN"]
    assert_same_values(source, result)


def test_a_reshape_of_one_pixel_needs_no_transpose() -> None:
    model = FloatModel()
    pixel = transpose(model, model.input(1, 1, 1, 8), TO_CHANNELS_FIRST)
    result = rewritten(model.finish(model.reshape(pixel, 1, 8)), sink_layouts, *rules_of("tidy"))
    assert op_names(result) == ["RESHAPE"]


@pytest.mark.parametrize("kind", ["another", "mean", "pad", "reshape", "softmax"])
def test_what_depends_on_the_order_stays(kind: str) -> None:
    model = FloatModel()
    x = first(model)
    if kind == "another":
        x = model.elementwise("ADD", x, model.input(1, 8, 4, 6))
    elif kind == "mean":
        x = model.op("MEAN", [x, model.const([0], np.int32)], (8, 4, 6))
    elif kind == "pad":
        x = model.op("PAD", [x, model.input(4, 2, type="INT32")], x.dims)
    elif kind == "reshape":
        x = model.reshape(x, 1, 8 * 24)
    else:
        x = model.op("SOFTMAX", [x], x.dims)
    names = op_names(model.model(x))
    _, left = run_pass(sink_layouts, model.model(x))
    assert left == names


def test_a_transpose_of_more_axes_than_there_are_stays() -> None:
    model = FloatModel()
    folded = transpose(model, model.input(1, 1, 1, 80), TO_CHANNELS_FIRST)
    built = model.model(model.reshape(folded, 1, 80))
    built.graphs[0].inputs[0].shape = (80,)
    assert run_pass(sink_layouts, built) == (False, ["TRANSPOSE", "RESHAPE"])


def test_two_that_are_smaller_than_their_sum_do_not_take_turns() -> None:
    model = FloatModel()
    rows = transpose(model, model.input(1, 3, 1, 8), TO_CHANNELS_FIRST)
    total = model.op("ADD", [rows, model.input(1, 8, 1, 2)], (1, 8, 3, 2))
    source = model.finish(model.max_pool(transpose(model, total, TO_CHANNELS_LAST), 1, 1))
    result = rewritten(source)
    run_phases(result, ["canonical"], Notes(result))
    assert op_names(result) == ["TRANSPOSE", "ADD", "MAX_POOL_2D"]
    assert_same_values(source, result)


def test_a_second_run_changes_nothing() -> None:
    model = FloatModel()
    built = model.model(body(model, "scalar"))
    assert run_pass(sink_layouts, built)[0]
    assert not run_pass(sink_layouts, built)[0]


@pytest.mark.parametrize("kind", ["computed axes", "too far", "one too far", "rows turned", "dimensions lost"])
def test_reductions_over_axes_that_cannot_be_named_otherwise_stay(kind: str) -> None:
    model = FloatModel()
    x = first(model)
    axes = {"too far": [5], "one too far": [4], "rows turned": [1], "dimensions lost": [2, 3]}.get(kind)
    shape = {"rows turned": (1, 4, 6), "dimensions lost": (1, 8)}.get(kind, (1, 8, 1, 6))
    axis = model.input(1, type="INT32") if axes is None else model.const(axes, np.int32)
    if kind == "rows turned":  # width and height would be swapped
        x = transpose(model, model.input(1, 6, 4, 8), (0, 3, 2, 1))
    built = model.model(model.op("MEAN", [x, axis], shape, keep_dims=kind != "rows turned"))
    before = op_names(built)
    assert run_pass(sink_layouts, built) == (False, before)


@pytest.mark.parametrize("keep_dims", [True, False])
def test_a_reduction_keeps_its_axes_where_it_did(keep_dims: bool) -> None:
    model = FloatModel()
    shape = (1, 1, 4, 6) if keep_dims else (1, 4, 6)
    source = model.finish(model.op("SUM", [first(model), model.const(-3, np.int32)], shape, keep_dims=keep_dims))
    result = rewritten(source, sink_layouts, *rules_of("tidy"))
    [reduction] = [op for op in result.ops() if op.name == "SUM"]
    assert reduction.input(0) in result.graphs[0].inputs
    np.testing.assert_array_equal(reduction.input(1).array, [3])
    assert op_names(result) == (["SUM", "TRANSPOSE"] if keep_dims else ["SUM"])
    assert_same_values(source, result)


@pytest.mark.parametrize("kind", ["levels", "joined", "rows", "more axes"])
def test_operands_that_cannot_be_flipped_back_keep_the_transpose(kind: str) -> None:
    model = FloatModel()
    x = first(model)
    if kind == "levels":
        y = model.op("MUL", [x, int8_constant("levels", np.ones((1, 8, 4, 6)), 1.0)], x.dims)
    elif kind == "joined":
        y = model.op("CONCATENATION", [x, model.input(1, 8, 4, 6)], (1, 16, 4, 6), axis=1)
    elif kind == "rows":
        y = model.op("SELECT", [model.const([True], np.bool_), x, model.const(np.ones((1, 8, 4, 6)))], x.dims)
        model.graph.set_input(model.graph.ops[-1], 0, model.const([True, False], np.bool_))
    else:
        y = model.op("MUL", [x, model.const(np.ones((2, 1, 8, 4, 6)))], (2, 1, 8, 4, 6))
    before = op_names(model.model(y))
    assert run_pass(sink_layouts, model.model(y)) == (False, before)


def test_a_reshape_to_a_transposed_shape_keeps_its_data() -> None:
    model = FloatModel()
    x = model.input(4, 6)
    shape = model.op("TRANSPOSE", [model.input(2, type="INT32"), model.const([0], np.int32)], (2,), type="INT32")
    built = model.model(model.op("RESHAPE", [x, shape], (-1, 3)))
    assert not run_pass(sink_layouts, built)[0]
    assert built.graphs[0].ops[-1].input(0) is x
