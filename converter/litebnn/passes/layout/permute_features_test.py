import numpy as np
import pytest

from litebnn.graph import Tensor
from litebnn.passes import PHASES
from litebnn.passes.layout.permute_features import permute_features
from tests.support.float_models import FloatModel, assert_same_values, dyadic, op_names, rewritten, run_pass

RNG = np.random.default_rng(0)


def flat(model: FloatModel) -> Tensor:
    """[1, 24] features of an image of 2 × 3 pixels with 4 channels, flattened channels first."""
    x = model.input(1, 2, 3, 4)
    turned = model.op("TRANSPOSE", [x, model.const((0, 3, 1, 2), np.int32)], (1, 4, 2, 3))
    return model.reshape(turned, 1, 24)


def test_the_columns_of_dense_layers_are_permuted(library: None) -> None:
    model = FloatModel()
    x = flat(model)
    shifted = model.elementwise("ADD", model.elementwise("MUL", x, model.const(2)), model.const(dyadic(RNG, 24)))
    sides = model.dense(shifted, dyadic(RNG, 3, 24)), model.dense(model.elementwise("RELU", x), dyadic(RNG, 3, 24))
    source = model.finish(model.elementwise("ADD", *sides))
    result = rewritten(source, permute_features, *PHASES["tidy"])
    assert "TRANSPOSE" not in op_names(result)
    assert_same_values(source, result)


@pytest.mark.parametrize("reader", ["output", "softmax", "input", "split"])
def test_features_that_are_read_in_their_order_keep_it(reader: str) -> None:
    model = FloatModel()
    x = flat(model)
    outputs = [model.dense(x, dyadic(RNG, 3, 24))]
    if reader == "output":
        outputs.append(x)
    elif reader == "softmax":
        outputs.append(model.op("SOFTMAX", [x], x.dims))
    elif reader == "input":
        outputs.append(model.dense(model.elementwise("ADD", x, model.input(1, 24)), dyadic(RNG, 3, 24)))
    else:
        outputs.append(model.dense(model.reshape(x, 2, 12), dyadic(RNG, 3, 12)))
    changed, _ = run_pass(permute_features, model.model(*outputs))
    assert not changed


def test_constants_of_more_axes_are_permuted_too(library: None) -> None:
    model = FloatModel()
    shifted = model.elementwise("ADD", flat(model), model.const(dyadic(RNG, 1, 24)))
    source = model.finish(model.dense(shifted, dyadic(RNG, 3, 24)))
    result = rewritten(source, permute_features, *PHASES["tidy"])
    assert "TRANSPOSE" not in op_names(result)
    assert_same_values(source, result)


@pytest.mark.parametrize(
    ("shape", "order"), [((1, 1, 3, 8), (1, 0, 3, 2)), ((1, 2, 3, 4), (0, 3, 1, 2)), ((1, 2, 3, 4), (0, 1, 2, 3))]
)
def test_a_batch_that_moves_and_features_of_unknown_number_keep_their_order(
    shape: tuple[int, ...], order: tuple[int, ...]
) -> None:
    model = FloatModel()
    x = model.input(*shape)
    turned = model.op("TRANSPOSE", [x, model.const(order, np.int32)], tuple(shape[axis] for axis in order))
    if order == (0, 3, 1, 2):
        turned.shape_signature = (1, 4, -1, 3)
    flattened = model.reshape(turned, 2, 12) if order == (0, 1, 2, 3) else model.reshape(turned, 1, 24)
    built = model.model(model.dense(flattened, dyadic(RNG, 3, flattened.dims[1])))
    assert not run_pass(permute_features, built)[0]
