import numpy as np

from litebnn.graph import Tensor
from litebnn.passes.layout.merge_transposes import merge_transposes
from tests.support.float_models import FloatModel, run_pass


def turn(model: FloatModel, x: Tensor, order: list[int]) -> Tensor:
    return model.op("TRANSPOSE", [x, model.const(order, np.int32)], [x.dims[axis] for axis in order])


def test_two_that_do_not_cancel_become_one() -> None:
    model = FloatModel()
    built = model.model(turn(model, turn(model, model.input(2, 3, 4, 5), [1, 0, 2, 3]), [0, 1, 3, 2]))
    assert run_pass(merge_transposes, built)[0]
    np.testing.assert_array_equal(built.graphs[0].ops[-1].input(1).array, [1, 0, 3, 2])


def test_two_that_cancel_are_none() -> None:
    model = FloatModel()
    x = model.input(2, 3, 4, 5)
    same = turn(model, turn(model, x, [0, 3, 1, 2]), [0, 2, 3, 1])
    built = model.model(model.elementwise("RELU", same))
    assert run_pass(merge_transposes, built)[0]
    assert built.graphs[0].ops[-1].input(0) is x


def test_other_ops_in_front_and_orders_that_only_a_run_tells_stay() -> None:
    model = FloatModel()
    built = model.model(turn(model, model.elementwise("RELU", model.input(2, 3)), [1, 0]))
    assert not run_pass(merge_transposes, built)[0]
    for computed in (0, 1):
        model = FloatModel()
        x = turn(model, turn(model, model.input(2, 3), [1, 0]), [1, 0])
        model.graph.set_input(model.graph.ops[computed], 1, model.input(2, type="INT32"))
        assert not run_pass(merge_transposes, model.model(model.elementwise("RELU", x)))[0]


def test_the_graphs_output_keeps_its_transposes() -> None:
    model = FloatModel()
    built = model.model(turn(model, turn(model, model.input(2, 3), [1, 0]), [1, 0]))
    assert not run_pass(merge_transposes, built)[0]
