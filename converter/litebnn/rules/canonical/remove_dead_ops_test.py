import warnings

import numpy as np
import pytest

import litebnn
from litebnn.graph import Op, OpCode, Options, Tensor
from litebnn.rules.canonical.remove_dead_ops import remove_dead_ops
from tests.support.float_models import FloatModel, run_pass, sign_weights


def test_ops_that_nobody_reads_go_and_those_with_effects_stay() -> None:
    model = FloatModel()
    x = model.input(1, 4)
    model.elementwise("NEG", model.elementwise("NEG", x))
    handle = model.op("VAR_HANDLE", [], (), type="RESOURCE", table="VarHandleOptions")
    model.graph.insert(Op(OpCode("ASSIGN_VARIABLE"), [handle, x], [], Options("AssignVariableOptions")))
    model.graph.insert(Op(OpCode("CUSTOM", "Log"), [x], [Tensor("log", "FLOAT32", (1,))]))
    changed, names = run_pass(remove_dead_ops, model.model(model.elementwise("ABS", x)))
    assert changed
    assert names == ["VAR_HANDLE", "ASSIGN_VARIABLE", "Log", "ABS"]


@pytest.mark.parametrize("other", [0.0, 1.0])
def test_a_layer_that_nobody_reads_has_this_for_a_reason(other: float) -> None:
    """The report must give the reason even if no layer is binary, in which case the model is not converted."""
    model = FloatModel()
    signs = model.sign(model.input(1, 4, 4, 32))
    weights = sign_weights(np.random.default_rng(0), 8, 3, 3, 32)
    model.conv(signs, weights)
    weights[0, 0, 0, 0] *= other
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that there is no binary layer
        _, report = litebnn.convert_tflite(model.finish(model.conv(signs, weights)), return_report=True)
    assert list(report.layers[0].reasons) == ["nothing reads what it computes"]
    assert report.layers[1].binary == (other == 1)
