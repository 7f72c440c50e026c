import numpy as np
import pytest

import litebnn
from litebnn.graph import Tensor
from litebnn.rules.canonical.fold_reshape_shapes import fold_reshape_shapes
from litebnn.rules.canonical.remove_dead_ops import remove_dead_ops
from tests.support.float_models import (
    FloatModel,
    assert_same_values,
    dyadic,
    op_names,
    rewritten,
    run_pass,
    sign_weights,
)


def flattened(shape: tuple[int, ...], signature: tuple[int, ...], flat: tuple[int, ...]) -> bytes:
    """Makes a model that reshapes its input to [batch, the rest], computed from the input's shape."""
    model = FloatModel()
    x = model.input(*shape, signature=signature)
    sizes = model.op("SHAPE", [x], (len(shape),), type="INT32", table="ShapeOptions", out_type=2)
    ends = [model.const([value], np.int32) for value in (0, 1, 1)]
    batch = model.op("STRIDED_SLICE", [sizes, *ends], (1,), type="INT32")
    rest = model.const([-1], np.int32)
    target = model.op("CONCATENATION", [batch, rest], (2,), type="INT32")
    return model.finish(model.op("RESHAPE", [x, target], flat))


def test_one_unknown_size_is_minus_one() -> None:
    source = flattened((1, 3, 3, 32), (-1, 3, 3, 32), (-1, 288))
    result = rewritten(source, fold_reshape_shapes, remove_dead_ops)
    assert op_names(result) == ["RESHAPE"]
    np.testing.assert_array_equal(result.graphs[0].ops[0].input(1).array, [-1, 288])
    assert_same_values(source, result)


def test_two_unknown_sizes_stay_computed() -> None:
    source = flattened((1, 3, 3, 32), (-1, -1, 3, 32), (-1, -1))
    assert op_names(rewritten(source, fold_reshape_shapes, remove_dead_ops))[0] == "SHAPE"


def test_the_columns_of_a_dense_layer_are_those_of_its_weights() -> None:
    """For a dense layer with three input dimensions and an unknown batch size, TensorFlow's converter writes a
    reshape with a computed number of columns.
    """
    model = FloatModel()
    x = model.sign(model.input(1, 8, 32, signature=(-1, 8, 32)))
    sizes = model.op("SHAPE", [x], (3,), type="INT32", table="ShapeOptions", out_type=2)

    def product(*axes: int) -> Tensor:
        of_axes = model.op("GATHER", [sizes, model.const(axes, np.int32)], (len(axes),), type="INT32", axis=0)
        return model.op("REDUCE_PROD", [of_axes, model.const([0], np.int32)], (), type="INT32", table="ReducerOptions")

    target = model.op("PACK", [product(0, 1), product(2)], (2,), type="INT32", values_count=2, axis=0)
    y = model.dense(model.op("RESHAPE", [x, target], (-1, -1)), sign_weights(np.random.default_rng(0), 16, 32))
    source = model.finish(model.reshape(y, -1, 8, 16))
    converted, report = litebnn.convert_tflite(source, return_report=True)
    assert report.layers[0].binary, str(report)
    assert set(op_names(converted)) == {"LceQuantize", "RESHAPE", "LceBconv2d"}
    sample = dyadic(np.random.default_rng(1), 3, 8, 32)
    expected, actual = (litebnn.Interpreter(each).predict(sample) for each in (source, converted))
    np.testing.assert_array_equal(actual, expected)


@pytest.mark.parametrize("reader", ["ADD", "dense of more dimensions", "dense of no columns", "dense and ADD", "none"])
def test_columns_that_no_dense_layer_tells_stay_computed(reader: str) -> None:
    """Only a dense layer determines the number of columns of its input; other ops accept rows of any size. A dense
    layer that keeps its input's axes does not determine it either."""
    model = FloatModel()
    x = model.input(2, 4, signature=(-1, -1))
    sizes = model.op("SHAPE", [x], (2,), type="INT32", table="ShapeOptions", out_type=2)
    rows = model.op("RESHAPE", [x, sizes], (-1, -1))
    weights = sign_weights(np.random.default_rng(0), 8, 0 if reader == "dense of no columns" else 4)
    outputs = [model.elementwise("ADD", rows, model.const(np.ones(4)))] if "ADD" in reader else []
    if "dense" in reader:
        outputs.append(model.dense(rows, weights))
        model.graph.ops[-1].options.keep_num_dims = reader == "dense of more dimensions"
    built = model.model(*(outputs or [rows]))
    before = op_names(built)
    assert run_pass(fold_reshape_shapes, built) == (False, before)
