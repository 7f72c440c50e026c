import numpy as np
import pytest

from litebnn.errors import ConversionError
from litebnn.flatbuffer import read_model
from litebnn.rules.build import ops
from litebnn.verify.folded_weights import with_folded_weights
from tests.support.float_models import FloatModel, op_names

RNG = np.random.default_rng(0)


def dense_of_negated_weights() -> bytes:
    model = FloatModel()
    negated = model.elementwise("NEG", model.const(RNG.standard_normal((4, 8))))
    return model.finish(model.dense(model.elementwise("NEG", model.input(1, 8)), negated))


@pytest.mark.usefixtures("library")
def test_weights_that_the_runtime_computes_so_too_become_constants() -> None:
    folded = with_folded_weights("test", dense_of_negated_weights())
    assert op_names(read_model(folded)) == ["NEG", "NEG", "FULLY_CONNECTED"]
    assert read_model(folded).graphs[0].ops[-1].input(1).is_constant


def test_a_model_that_computes_no_weights_is_itself() -> None:
    model = FloatModel()
    source = model.finish(model.dense(model.input(1, 8), RNG.standard_normal((4, 8))))
    assert with_folded_weights("test", source) is source


@pytest.mark.usefixtures("library")
def test_weights_that_the_runtime_computes_otherwise_are_a_mistake(monkeypatch: pytest.MonkeyPatch) -> None:
    evaluate = ops.evaluate
    monkeypatch.setattr(ops, "evaluate", lambda *args: evaluate(*args) * np.float32(1.01))
    with pytest.raises(ConversionError, match='the weights "neg_.*" that are computed from constants are off by'):
        with_folded_weights("test", dense_of_negated_weights())
