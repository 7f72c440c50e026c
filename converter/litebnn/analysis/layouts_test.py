import numpy as np
import pytest

from litebnn.analysis.layouts import IN_LAYOUT, Layout, layouts_of
from litebnn.graph import Op
from tests.support.float_models import FloatModel


def reshape(before: tuple[int, ...], after: tuple[int, ...]) -> Op:
    model = FloatModel()
    model.reshape(model.input(*before), *after)
    return model.graph.ops[-1]


@pytest.mark.parametrize(
    ("before", "after", "axes"),
    [
        ((2, 3, 4), (2, 3, 1, 4), [(0, 1, None, 2)]),
        ((2, 3, 1, 4), (2, 3, 4), [(0, 1, 3)]),
        ((2, 1, 4), (2, 1, 1, 4), [(0, None, 1, 2), (0, 1, None, 2)]),
        ((2, 3, 4), (2, 12), [None]),
        ((2, 3, 4), (2, 4, 3), [None]),
        ((2, 3), (2, 1, 1, 3), [None]),
    ],
)
def test_a_reshape_adds_or_takes_away_an_axis_or_folds(before, after, axes) -> None:
    assert layouts_of(reshape(before, after)) == [Layout(before, after, each) for each in axes]


def test_another_op_has_no_layout() -> None:
    model = FloatModel()
    model.elementwise("RELU", model.input(2, 3))
    assert layouts_of(model.graph.ops[-1]) == []


@pytest.mark.parametrize("axes", [(0, 3, 1, 2), (2, 0, 1, 3), (0, 1, None, 2, 3)])
def test_the_inverse_restores_what_numpy_has_moved(axes: tuple[int | None, ...]) -> None:
    array = np.arange(120).reshape(2, 3, 4, 5)
    order = [axis for axis in axes if axis is not None]
    moved = np.expand_dims(array.transpose(order), [place for place, axis in enumerate(axes) if axis is None])
    layout = Layout(array.shape, moved.shape, axes)
    np.testing.assert_array_equal(layout.of_array(array), moved)
    sizes = layout.moved(np.array(array.shape), 1)
    np.testing.assert_array_equal(sizes, moved.shape)
    np.testing.assert_array_equal(layout.inverse.moved(sizes, 1), array.shape)
    assert layout.inverse.inverse == layout


def test_a_smaller_operand_is_broadcast_first_and_an_axis_that_would_be_lost_refused() -> None:
    to_channels_last = Layout((1, 8, 4, 6), (1, 4, 6, 8), (0, 2, 3, 1))
    values = to_channels_last.of_array(np.arange(8).reshape(8, 1, 1))
    np.testing.assert_array_equal(values, np.arange(8).reshape(1, 1, 1, 8))
    assert Layout((2, 1, 4), (2, 4), (0, 2)).of_array(np.zeros((2, 1, 4))) is None


@pytest.mark.parametrize(("axes", "moved"), [([2, -1], [3, 1]), ([-4], [0]), ([4], None), ([-5], None)])
def test_the_axes_of_a_reduction_are_those_of_the_rank(axes: list[int], moved: list[int] | None) -> None:
    model = FloatModel()
    model.op("MEAN", [model.input(1, 4, 6, 8), model.const(axes, np.int32)], (1, 1, 1, 1), keep_dims=True)
    parameters = IN_LAYOUT["MEAN"](model.graph.ops[-1], Layout((1, 4, 6, 8), (1, 8, 4, 6), (0, 3, 1, 2)))
    assert (None if parameters is None else parameters["/axes"].tolist()) == moved
