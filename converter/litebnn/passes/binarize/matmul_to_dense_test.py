import numpy as np
import pytest

from litebnn.passes import BINARY_PHASES, run_phases
from litebnn.passes.binarize.matmul_to_dense import matmul_to_dense
from litebnn.passes.find_signs.recognize_signs import recognize_signs
from litebnn.rewriting.notes import Notes
from tests.support.float_models import FloatModel, assert_same_values, op_names, rewritten, sign_weights

RNG = np.random.default_rng(0)


@pytest.mark.usefixtures("library")
@pytest.mark.parametrize("transposed", [False, True])
def test_a_product_with_a_constant_matrix_is_a_dense_layer(transposed: bool) -> None:
    weights = sign_weights(RNG, 10, 64)
    model = FloatModel()
    matrix = model.const(weights if transposed else weights.T)
    product = model.op("BATCH_MATMUL", [model.sign(model.input(1, 64)), matrix], (1, 10), adj_y=transposed)
    source = model.finish(product)
    result = rewritten(source, recognize_signs, matmul_to_dense)
    dense = result.graphs[0].ops[-1]
    assert dense.name == "FULLY_CONNECTED"
    np.testing.assert_array_equal(dense.input(1).array, weights)
    assert_same_values(source, result)


def test_a_kernel_whose_sign_is_left_as_ops_becomes_binary() -> None:
    model = FloatModel()
    kernel = model.sign(model.const(RNG.standard_normal((64, 10))))
    built = model.model(model.op("BATCH_MATMUL", [model.sign(model.input(1, 64)), kernel], (1, 10)))
    notes = Notes(built)
    run_phases(built, BINARY_PHASES, notes)
    assert op_names(built) == ["LceQuantize", "RESHAPE", "LceBconv2d", "RESHAPE"]
    assert notes.layers[0].binary
    assert notes.layers[0].macs == 640


_WHY_NOT = ("constant float matrix", "not ±alpha", "not the output", "more than one dimension")


def test_other_products_stay_and_say_why() -> None:
    model = FloatModel()
    x, rows = model.sign(model.input(1, 64)), model.sign(model.input(1, 1, 64, signature=(-1, -1, 64)))
    products = [
        model.op("BATCH_MATMUL", [x, model.input(64, 10)], (1, 10)),
        model.op("BATCH_MATMUL", [x, model.const(RNG.standard_normal((64, 10)))], (1, 10)),
        model.op("BATCH_MATMUL", [model.input(1, 64), model.const(sign_weights(RNG, 64, 10))], (1, 10)),
        model.op("BATCH_MATMUL", [rows, model.const(np.ones((64, 10)))], (-1, -1, 10)),
    ]
    built = model.model(*products)
    notes = Notes(built)
    recognize_signs(built.graphs[0], notes)
    assert not matmul_to_dense(built.graphs[0], notes)
    reasons = [" ".join(layer.reasons) for layer in notes.layers]
    for reason, expected in zip(reasons, _WHY_NOT, strict=True):
        assert expected in reason
