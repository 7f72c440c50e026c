import ctypes
from pathlib import Path

import numpy as np
import pytest

import litebnn
from litebnn.runtime.find import find_runtime
from tests.needs import imported

GOLDEN = Path(__file__).resolve().parents[3] / "tests" / "golden"
MODEL, RECORDED = GOLDEN / "residual.lce.tflite", GOLDEN / "residual.npz"

pytestmark = pytest.mark.usefixtures("library")


def test_runs_a_model_where_the_runtime_exports_add_custom() -> None:
    runtime = imported("tflite_runtime.interpreter", "tflite-runtime")
    interpreter = runtime.InterpreterWithCustomOps(model_path=str(MODEL), custom_op_registerers=[litebnn.register_ops])
    interpreter.allocate_tensors()
    recorded = np.load(RECORDED)
    interpreter.set_tensor(interpreter.get_input_details()[0]["index"], recorded["input"])
    interpreter.invoke()
    found = interpreter.get_tensor(interpreter.get_output_details()[0]["index"])
    np.testing.assert_allclose(found, recorded["lce"], rtol=0, atol=1e-3)


def test_names_the_alternative_where_it_does_not() -> None:
    runtime = find_runtime("ai-edge-litert")
    with pytest.raises(
        RuntimeError, match=r"does not export .*AddCustom.* use experimental_delegates=\[litebnn.load_del"
    ):
        runtime.InterpreterWithCustomOps(model_path=str(MODEL), custom_op_registerers=[litebnn.register_ops])


def test_what_is_no_resolver_is_an_error() -> None:
    other = ctypes.create_string_buffer(64)
    with pytest.raises(RuntimeError, match="expected the address of a tflite::MutableOpResolver"):
        litebnn.register_ops(ctypes.addressof(other))
