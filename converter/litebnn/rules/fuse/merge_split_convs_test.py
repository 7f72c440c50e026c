import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from litebnn.flatbuffer import read_model
from litebnn.graph import Op, Tensor, constant, like
from litebnn.rules.build.int8 import int8_constant
from litebnn.rules.canonical.remove_dead_ops import remove_dead_ops
from litebnn.rules.fuse.merge_split_convs import merge_split_convs
from tests.support.float_models import FloatModel, assert_same_values, dyadic, op_names, rewritten, run_pass

PASSES = (merge_split_convs, remove_dead_ops)


def split(model: FloatModel, x: Tensor, count: int, axis: int) -> list[Tensor]:
    dims = list(x.dims)
    dims[axis] //= count
    first = model.op("SPLIT", [model.const(axis, np.int32), x], dims, table="SplitOptions", num_splits=count)
    [op] = [op for op in model.graph.ops if first in op.outputs]
    assert isinstance(op, Op)
    op.outputs += [like(first, f"part {i}") for i in range(1, count)]
    model.graph.replace(op, Op(op.code, op.inputs, op.outputs, op.options))
    return op.outputs


def split_convs(
    groups: int = 4, axis: int = 3, order: int = 1, activation: str = "none", stride: tuple[int, int] = (1, 1)
) -> bytes:
    model, rng = FloatModel(), np.random.default_rng(groups)
    parts = split(model, model.input(1, 8, 7, 4 * groups), groups, axis)
    convs = [
        model.conv(
            part,
            dyadic(rng, 5, 3, 3, part.channels),
            dyadic(rng, 5),
            same=True,
            stride=stride,
            activation=activation if i == 0 else "none",
        )
        for i, part in enumerate(parts)
    ]
    dims = (*convs[0].dims[:3], 5 * groups)
    return model.finish(model.op("CONCATENATION", convs[::order], dims, axis=3, fused_activation_function=0))


@settings(max_examples=10)
@given(st.integers(2, 5), st.sampled_from([(1, 1), (2, 1)]), st.sampled_from([3, -1]))
def test_convolutions_of_the_parts_are_one_with_groups(groups: int, stride: tuple[int, int], axis: int) -> None:
    source = split_convs(groups, axis, stride=stride)
    result = rewritten(source, *PASSES)
    assert op_names(result) == ["CONV_2D"]
    [first, *_] = [op for op in read_model(source).ops() if op.name == "CONV_2D"]
    assert result.graphs[0].ops[0].input(1).name == f"{first.input(1).name}/groups"
    assert_same_values(source, result)


def test_other_splits_orders_and_options_stay() -> None:
    for source in (split_convs(axis=1), split_convs(order=-1), split_convs(activation="relu")):
        assert op_names(rewritten(source, *PASSES))[-1] == "CONCATENATION"


@pytest.mark.parametrize("place", [1, 2])
@pytest.mark.parametrize("case", ["one computed", "all computed", "another shape", "levels"])
def test_filters_and_biases_that_do_not_join_stay(place: int, case: str) -> None:
    model = read_model(split_convs(2))
    graph = model.graphs[0]
    first, *_ = convs = [op for op in graph.ops if op.name == "CONV_2D"]
    shape = first.input(place).shape
    changed = {
        "another shape": constant("other", np.ones((*shape[:-1], 2 * shape[-1]), np.float32)),
        "levels": int8_constant("levels", np.ones(shape), 1.0),
    }.get(case, Tensor("computed", "FLOAT32", shape))
    for op in convs if case == "all computed" else [first]:
        graph.set_input(op, place, changed)
    assert not run_pass(merge_split_convs, model)[0]


def test_filters_without_axes_stay() -> None:
    """No runtime accepts filters without axes, but a damaged file may have them."""
    model = FloatModel()
    parts = split(model, model.input(1, 8, 8, 8), 2, 3)
    convs = [model.conv(part, dyadic(np.random.default_rng(0), 5, 1, 1, 4)) for part in parts]
    for op in [op for op in model.graph.ops if op.name == "CONV_2D"]:
        model.graph.set_input(op, 1, constant("filter", np.float32(1)))
    built = model.model(model.op("CONCATENATION", convs, (1, 8, 8, 10), axis=3, fused_activation_function=0))
    assert run_pass(merge_split_convs, built)[0] is False


def test_a_split_into_one_part_is_none() -> None:
    source = split_convs(1)
    result = rewritten(source, *PASSES)
    assert op_names(result) == ["CONV_2D"]
    assert_same_values(source, result)
