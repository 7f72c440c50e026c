import numpy as np
import pytest

from litebnn.contract import unpack_bits
from litebnn.passes import BINARY_PHASES, run_phases
from litebnn.passes.binarize.binarize_dense import binarize_dense
from litebnn.passes.find_signs.recognize_signs import recognize_signs
from litebnn.rewriting.notes import Notes
from tests.support.float_models import FloatModel, op_names, sign_weights

RNG = np.random.default_rng(0)


def test_a_dense_layer_is_a_1x1_convolution() -> None:
    weights = sign_weights(RNG, 10, 100)
    model = FloatModel()
    built = model.model(model.dense(model.sign(model.input(4, 100)), weights, np.arange(10)))
    notes = Notes(built)
    recognize_signs(built.graphs[0], notes)
    assert binarize_dense(built.graphs[0], notes)
    assert op_names(built)[-3:] == ["RESHAPE", "LceBconv2d", "RESHAPE"]
    op = built.graphs[0].ops[-2]
    assert op.input(0).dims == (4, 1, 1, 4)
    assert op.output.dims == (4, 1, 1, 10)
    words, alpha = op.input(1).array, op.input(2).array
    assert words is not None
    assert alpha is not None
    signs = np.where(unpack_bits(words, 100), -1.0, 1.0).reshape(10, 100)
    np.testing.assert_array_equal(signs * alpha[:, None], weights)


@pytest.mark.parametrize(
    ("weights", "reason"),
    [
        (np.where(np.arange(1000).reshape(10, 100) == 7, 0, sign_weights(RNG, 10, 100)), "contain zeros"),
        (RNG.standard_normal((10, 100)), "not ±alpha"),
        (sign_weights(RNG, 10, 50), "rows of 50"),
    ],
)
def test_other_dense_layers_stay_float(weights: np.ndarray, reason: str) -> None:  # type: ignore[type-arg]
    model = FloatModel()
    built = model.model(model.dense(model.sign(model.input(2, 100)), weights))
    notes = Notes(built)
    run_phases(built, BINARY_PHASES, notes)
    assert "FULLY_CONNECTED" in op_names(built)
    assert reason in " ".join(notes.layers[0].reasons)


@pytest.mark.parametrize("batch", [2, -1])
def test_each_row_of_a_layer_that_keeps_its_axes_is_a_pixel(batch: int) -> None:
    model = FloatModel()
    x = model.sign(model.input(2, 5, 32, signature=(batch, 5, 32)))
    weights = model.const(sign_weights(np.random.default_rng(0), 8, 32))
    built = model.model(model.op("FULLY_CONNECTED", [x, weights, None], (batch, 5, 8), keep_num_dims=True))
    run_phases(built, BINARY_PHASES, Notes(built))
    [layer] = [op for op in built.ops() if op.name == "LceBconv2d"]
    rows = 10 if batch == 2 else -1
    assert (layer.input(0).dims, layer.output.dims) == ((rows, 1, 1, 1), (rows, 1, 1, 8))
    assert built.graphs[0].outputs[0].dims == (batch, 5, 8)
