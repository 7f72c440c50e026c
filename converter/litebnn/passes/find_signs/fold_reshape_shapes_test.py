import numpy as np
import pytest

from litebnn.passes.find_signs.fold_reshape_shapes import fold_reshape_shapes
from litebnn.passes.tidy.remove_dead_ops import remove_dead_ops
from tests.support.float_models import FloatModel, assert_same_values, op_names, rewritten


def flattened(shape: tuple[int, ...], signature: tuple[int, ...], flat: tuple[int, ...]) -> bytes:
    """A model that reshapes its input to what it computes from the input's shape: [batch, the rest]."""
    model = FloatModel()
    x = model.input(*shape, signature=signature)
    sizes = model.op("SHAPE", [x], (len(shape),), type="INT32", table="ShapeOptions", out_type=2)
    ends = [model.const([value], np.int32) for value in (0, 1, 1)]
    batch = model.op("STRIDED_SLICE", [sizes, *ends], (1,), type="INT32")
    rest = model.const([-1], np.int32)
    target = model.op("CONCATENATION", [batch, rest], (2,), type="INT32")
    return model.finish(model.op("RESHAPE", [x, target], flat))


@pytest.mark.usefixtures("library")
def test_one_unknown_size_is_minus_one() -> None:
    source = flattened((1, 3, 3, 32), (-1, 3, 3, 32), (-1, 288))
    result = rewritten(source, fold_reshape_shapes, remove_dead_ops)
    assert op_names(result) == ["RESHAPE"]
    np.testing.assert_array_equal(result.graphs[0].ops[0].input(1).array, [-1, 288])
    assert_same_values(source, result)


def test_two_unknown_sizes_stay_computed() -> None:
    source = flattened((1, 3, 3, 32), (-1, -1, 3, 32), (-1, -1))
    assert op_names(rewritten(source, fold_reshape_shapes, remove_dead_ops))[0] == "SHAPE"
