import numpy as np

from litebnn.flatbuffer import read_model
from litebnn.rules.canonical.widen_blocks import widen_blocks
from tests.support.float_models import FloatModel, rewritten, run_pass
from tests.support.quantized_models import dequantized_weights, with_blocks

WEIGHTS = np.random.default_rng(0).standard_normal((8, 64)).astype(np.float32)


def dense(type: str) -> bytes:
    model = FloatModel()
    return with_blocks(model.finish(model.dense(model.input(1, 64), WEIGHTS)), type, 32)


def test_two_bits_become_four_of_the_same_values() -> None:
    source = read_model(dense("INT2"))
    result = rewritten(dense("INT2"), widen_blocks)
    [before], [after] = source.ops(), result.ops()
    assert (before.input(1).type, after.input(1).type) == ("INT2", "INT4")
    np.testing.assert_array_equal(dequantized_weights(after), dequantized_weights(before))


def test_four_bits_one_scale_and_floats_stay() -> None:
    assert not run_pass(widen_blocks, read_model(dense("INT4")))[0]
    model = FloatModel()
    assert not run_pass(widen_blocks, model.model(model.dense(model.input(1, 64), WEIGHTS)))[0]


def test_an_embedding_stays() -> None:
    """Runtimes support INT2 for EMBEDDING_LOOKUP, so its weights need not become INT4."""
    model = read_model(dense("INT2"))
    [op] = model.ops()
    graph = model.graphs[0]
    graph.remove(op)
    op.code = type(op.code)("EMBEDDING_LOOKUP")
    graph.insert(op)
    assert not run_pass(widen_blocks, model)[0]
