import numpy as np

from litebnn.rules.build.int8 import int8_constant
from litebnn.rules.canonical.merge_constants import merge_constants
from tests.support.float_models import FloatModel, assert_same_values, rewritten, run_pass


def test_equal_constants_become_one() -> None:
    model = FloatModel()
    product = model.elementwise("MUL", model.input(1, 4), model.const(np.full(4, 2)))
    source = model.finish(model.elementwise("ADD", product, model.const(np.full(4, 2))))
    result = rewritten(source, merge_constants)
    multiply, add = result.graphs[0].ops
    assert multiply.input(1) is add.input(1)
    assert_same_values(source, result)


def test_other_values_types_shapes_and_grids_stay_apart() -> None:
    model = FloatModel()
    x, levels = model.input(1, 4), model.input(1, 4, type="INT8")
    for constant in (model.const(np.ones(4)), model.const(np.zeros(4)), model.const(np.ones((1, 4)))):
        model.elementwise("ADD", x, constant)
    model.op("RESHAPE", [x, model.const(np.array([0, 0, 0, 0]), np.int32)], (1, 4))
    for scale in (0.5, 0.25):
        model.elementwise("ADD", levels, int8_constant("c", np.full(4, scale, np.float32), scale), type="INT8")
    assert not run_pass(merge_constants, model.model(*[op.output for op in model.graph.ops]))[0]
