import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import litebnn
from litebnn.flatbuffer import read_model
from litebnn.frontends.unknown_batch import with_unknown_batch
from litebnn.graph import Tensor
from tests.support.float_models import FloatModel

RNG = np.random.default_rng(0)
FILTER, WEIGHTS = RNG.standard_normal((4, 3, 3, 2)).astype(np.float32), RNG.standard_normal((5, 64)).astype(np.float32)


def network(batch: int, *, patches: int = 1, weights: float = 1.0) -> bytes:
    """A convolution and a dense layer, which takes an image as several rows."""
    model = FloatModel()
    x = model.conv(model.input(batch, 6, 6, 2), FILTER)
    flat = model.reshape(x, batch * patches, 64 // patches)
    return model.finish(model.dense(flat, weights * WEIGHTS[:, : 64 // patches]))


@given(st.integers(1, 5), st.integers(1, 3), st.sampled_from([1, 2, 4]))
def test_the_batch_is_what_differs(size: int, more: int, patches: int) -> None:
    sizes = size, size + more
    found = with_unknown_batch(*(network(batch, patches=patches) for batch in sizes), sizes)
    assert found is not None
    graph = read_model(found).graphs[0]
    [x], [y] = graph.inputs, graph.outputs
    assert (x.dims, x.shape) == ((-1, 6, 6, 2), (1, 6, 6, 2))
    assert (y.dims, y.shape) == ((-1, 5), (patches, 5))
    [reshape] = [op for op in graph.ops if op.name == "RESHAPE"]
    assert list(reshape.input(1).array) == [-1, 64 // patches]


@pytest.mark.usefixtures("library")
@pytest.mark.filterwarnings("ignore:no binary layer")
def test_it_runs_with_every_batch() -> None:
    found = with_unknown_batch(network(2), network(3), (2, 3))
    assert found is not None
    images = RNG.standard_normal((5, 6, 6, 2)).astype(np.float32)
    expected = litebnn.Interpreter(network(5)).predict(images)
    np.testing.assert_allclose(litebnn.Interpreter(litebnn.convert_tflite(found)).predict(images), expected, atol=1e-5)


def sliced(batch: int) -> bytes:
    """A model whose constant depends on the batch in another op than a reshape."""
    model = FloatModel()
    x = model.input(batch, 4)
    operands: list[Tensor] = [x, model.const([0, 0], np.int32), model.const([batch, 2], np.int32)]
    return model.finish(model.op("SLICE", operands, (batch, 2)))


def test_other_differences_are_refused() -> None:
    assert with_unknown_batch(network(2), network(3, weights=2.0), (2, 3)) is None
    assert with_unknown_batch(network(2), sliced(3), (2, 3)) is None
    assert with_unknown_batch(sliced(2), sliced(3), (2, 3)) is None
