import numpy as np
import pytest

from litebnn.graph import Tensor
from litebnn.rules.canonical.raise_layouts import raise_layouts
from litebnn.rules.canonical.sink_layouts import sink_layouts
from litebnn.rules.phases import Rule, rules_of
from tests.support.float_models import FloatModel, assert_same_values, op_names, rewritten, run_pass


def pad(model: FloatModel, x: Tensor, axis: int) -> Tensor:
    amounts = [(1, 2) if i == axis else (0, 0) for i in range(len(x.dims))]
    dims = [size + sum(more) for size, more in zip(x.dims, amounts, strict=True)]
    return model.op("PADV2", [x, model.const(amounts, np.int32), model.const(1)], dims)


def transpose(model: FloatModel, x: Tensor, *order: int) -> Tensor:
    return model.op("TRANSPOSE", [x, model.const(order, np.int32)], [x.dims[axis] for axis in order])


@pytest.mark.parametrize("axis", [1, 2, 3])
def test_padding_goes_after_the_transpose(axis: int) -> None:
    model = FloatModel()
    source = model.finish(transpose(model, pad(model, model.input(1, 4, 6, 8), axis), 0, 2, 3, 1))
    result = rewritten(source, raise_layouts, *rules_of("tidy"))
    assert op_names(result) == ["TRANSPOSE", "PADV2"]
    assert_same_values(source, result)


def test_padding_and_the_axis_of_a_conv1d_go_after_the_transpose() -> None:
    model = FloatModel()
    padded = model.reshape(pad(model, model.input(2, 4, 6), 2), 2, 4, 1, 9)
    source = model.finish(transpose(model, padded, 0, 2, 3, 1))
    result = rewritten(source, raise_layouts, *rules_of("tidy"), raise_layouts, *rules_of("tidy"))
    assert op_names(result) == ["TRANSPOSE", "RESHAPE", "PADV2"]
    assert_same_values(source, result)


def test_an_axis_that_alone_is_moved_needs_no_transpose() -> None:
    model = FloatModel()
    source = model.finish(transpose(model, model.reshape(model.input(2, 4, 6), 2, 4, 1, 6), 0, 2, 1, 3))
    result = rewritten(source, raise_layouts, *rules_of("tidy"))
    assert op_names(result) == ["RESHAPE"]
    assert_same_values(source, result)


def test_an_axis_is_taken_away_after_both_transposes() -> None:
    model = FloatModel()
    squeezed = model.reshape(transpose(model, model.input(2, 1, 6, 4), 0, 3, 1, 2), 2, 4, 6)
    source = model.finish(model.elementwise("RELU", transpose(model, squeezed, 0, 2, 1)))
    result = rewritten(source, raise_layouts, *rules_of("tidy"), raise_layouts, *rules_of("tidy"))
    assert op_names(result) == ["RESHAPE", "RELU"]
    assert_same_values(source, result)


@pytest.mark.parametrize("axis", [0, 1, 2, 3])
def test_any_axis_is_taken_away_after_the_transpose(axis: int) -> None:
    model = FloatModel()
    shape = list(np.insert([2, 4, 6], axis, 1))
    squeezed = model.reshape(model.elementwise("RELU", model.input(*shape)), 2, 4, 6)
    source = model.finish(transpose(model, squeezed, 2, 0, 1))
    result = rewritten(source, raise_layouts)
    assert_same_values(source, result)


@pytest.mark.parametrize("kind", ["read", "output", "reshape"])
def test_others_stay(kind: str) -> None:
    model = FloatModel()
    x = model.input(1, 4, 6, 8)
    padded = model.reshape(x, 1, 6, 4, 8) if kind == "reshape" else pad(model, x, 2)
    outputs = [transpose(model, padded, 0, 2, 3, 1)]
    if kind != "reshape":
        outputs.append(padded if kind == "output" else model.elementwise("RELU", padded))
    assert not run_pass(raise_layouts, model.model(*outputs))[0]


def test_padding_of_axes_that_nobody_has_declared_stays() -> None:
    model = FloatModel()
    built = model.model(transpose(model, pad(model, model.input(1, 4, 6, 8), 1), 0, 2, 3, 1))
    built.graphs[0].inputs[0].shape = ()
    assert run_pass(raise_layouts, built) == (False, ["PADV2", "TRANSPOSE"])


MERGING = pytest.mark.parametrize("one", [sink_layouts, raise_layouts])


@MERGING
def test_two_that_do_not_cancel_become_one(one: Rule) -> None:
    model = FloatModel()
    built = model.model(transpose(model, transpose(model, model.input(2, 3, 4, 5), 1, 0, 2, 3), 0, 1, 3, 2))
    assert run_pass(one, built)[0]
    np.testing.assert_array_equal(built.graphs[0].ops[-1].input(1).array, [1, 0, 3, 2])


@MERGING
def test_two_that_cancel_are_none(one: Rule) -> None:
    model = FloatModel()
    x = model.input(2, 3, 4, 5)
    same = transpose(model, transpose(model, x, 0, 3, 1, 2), 0, 2, 3, 1)
    built = model.model(model.elementwise("RELU", same))
    assert run_pass(one, built)[0]
    assert built.graphs[0].ops[-1].input(0) is x


def test_other_ops_before_it_and_orders_that_only_a_run_tells_stay() -> None:
    model = FloatModel()
    built = model.model(transpose(model, model.elementwise("RELU", model.input(2, 3)), 1, 0))
    assert not run_pass(raise_layouts, built)[0]
    for computed in (0, 1):
        model = FloatModel()
        x = transpose(model, transpose(model, model.input(2, 3), 1, 0), 1, 0)
        model.graph.set_input(model.graph.ops[computed], 1, model.input(2, type="INT32"))
        assert not run_pass(raise_layouts, model.model(model.elementwise("RELU", x)))[0]


@MERGING
def test_the_graphs_output_keeps_its_transposes(one: Rule) -> None:
    model = FloatModel()
    built = model.model(transpose(model, transpose(model, model.input(2, 3), 1, 0), 1, 0))
    assert not run_pass(one, built)[0]
