import numpy as np
import pytest

from litebnn.analysis.walks import MOST_OPS
from litebnn.graph import Tensor
from litebnn.rules.build.int8 import int8_constant
from litebnn.rules.canonical.permute_features import permute_features
from litebnn.rules.phases import rules_of
from tests.support.float_models import FloatModel, assert_same_values, dyadic, op_names, rewritten, run_pass

RNG = np.random.default_rng(0)


def flat(model: FloatModel) -> Tensor:
    """Makes the features [1, 24] of an image of 2 × 3 pixels with 4 channels, flattened channel-first."""
    x = model.input(1, 2, 3, 4)
    turned = model.op("TRANSPOSE", [x, model.const((0, 3, 1, 2), np.int32)], (1, 4, 2, 3))
    return model.reshape(turned, 1, 24)


def test_the_columns_of_dense_layers_are_permuted() -> None:
    model = FloatModel()
    x = flat(model)
    shifted = model.elementwise("ADD", model.elementwise("MUL", x, model.const(2)), model.const(dyadic(RNG, 24)))
    sides = model.dense(shifted, dyadic(RNG, 3, 24)), model.dense(model.elementwise("RELU", x), dyadic(RNG, 3, 24))
    source = model.finish(model.elementwise("ADD", *sides))
    result = rewritten(source, permute_features, *rules_of("tidy"))
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


def test_constants_of_more_axes_are_permuted_too() -> None:
    model = FloatModel()
    shifted = model.elementwise("ADD", flat(model), model.const(dyadic(RNG, 1, 24)))
    source = model.finish(model.dense(shifted, dyadic(RNG, 3, 24)))
    result = rewritten(source, permute_features, *rules_of("tidy"))
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


@pytest.mark.parametrize("kind", ["shuffled", "levels", "computed", "other columns", "as weights", "broadcast", "many"])
def test_readers_whose_constants_cannot_be_permuted_keep_the_order(kind: str) -> None:
    model = FloatModel()
    x = flat(model)
    y = model.dense(x, dyadic(RNG, 3, 12 if kind == "other columns" else 24))
    layer = model.graph.ops[-1]
    if kind == "shuffled":
        layer.options.weights_format = 1
    elif kind == "levels":
        model.graph.set_input(layer, 1, int8_constant("weights", np.ones((3, 24)), 1.0))
    elif kind == "computed":
        model.graph.set_input(layer, 1, model.input(3, 24))
    elif kind == "as weights":
        model.graph.set_input(layer, 0, model.input(1, 24))
        model.graph.set_input(layer, 1, x)
    elif kind == "broadcast":
        y = model.elementwise("ADD", x, model.const(dyadic(RNG, 2, 24)))
    elif kind == "many":
        for _ in range(MOST_OPS + 1):
            x = model.elementwise("RELU", x)
        y = model.dense(x, dyadic(RNG, 3, 24))
    assert not run_pass(permute_features, model.model(y))[0]


def test_features_in_another_order_have_another_name() -> None:
    """`verify` and `compare` match tensors of two models by name. They must not match permuted features with features
    in the old order."""
    model = FloatModel()
    x = flat(model)
    relu = model.elementwise("RELU", x)
    names = {x.name, relu.name}
    built = model.model(model.dense(relu, dyadic(RNG, 3, 24)))
    assert run_pass(permute_features, built)[0]
    assert names.isdisjoint(op.output.name for op in built.ops())


@pytest.mark.parametrize(("ops", "is_permuted"), [(MOST_OPS - 1, True), (MOST_OPS, False)])
def test_features_are_followed_through_a_bounded_count_of_ops(ops: int, is_permuted: bool) -> None:
    model = FloatModel()
    x = flat(model)
    for _ in range(ops):
        x = model.elementwise("RELU", x)
    assert run_pass(permute_features, model.model(model.dense(x, dyadic(RNG, 3, 24))))[0] is is_permuted
