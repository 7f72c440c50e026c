"""Tests the golden models, which Larq Compute Engine wrote, with the delegate in every installed runtime."""

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import litebnn
from litebnn.runtime.find import RUNTIMES, find_runtime
from tests.needs import need

GOLDEN = Path(__file__).parents[1] / "golden"
NAMES = sorted(path.name.removesuffix(".lce.tflite") for path in GOLDEN.glob("*.lce.tflite"))


@pytest.fixture(scope="module", params=RUNTIMES)
def runtime(request: pytest.FixtureRequest, library: None) -> Any:
    # TensorFlow's libraries break a tflite-runtime that is loaded later. test_runtimes.py runs the same models in
    # separate processes.
    if request.param == "tflite-runtime" and "tensorflow" in sys.modules and RUNTIMES[request.param] not in sys.modules:
        pytest.skip("TensorFlow was loaded into this process before tflite-runtime")
    need(request.param)
    return find_runtime(request.param)


@pytest.mark.parametrize("name", NAMES)
def test_golden_model(name: str, runtime: Any) -> None:
    # For an int8 ADD, newer releases of XNNPACK round differently from the runtime's own kernels, which computed the
    # expected output. A difference of one level flips signs in later layers.
    resolver = runtime.OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES if name == "int8_qat" else None
    interpreter = runtime.Interpreter(
        str(GOLDEN / f"{name}.lce.tflite"),
        experimental_delegates=[litebnn.load_delegate(num_threads=2)],
        **({"experimental_op_resolver_type": resolver} if resolver else {}),
    )
    source, result = interpreter.get_input_details()[0], interpreter.get_output_details()[0]
    golden = np.load(GOLDEN / f"{name}.npz")
    interpreter.resize_tensor_input(source["index"], golden["input"].shape)
    interpreter.allocate_tensors()
    interpreter.set_tensor(source["index"], golden["input"])
    interpreter.invoke()
    found, expected = interpreter.get_tensor(result["index"]), golden["lce"]
    assert found.shape == expected.shape
    assert found.dtype == expected.dtype
    tolerance = int8_step(interpreter) if name == "int8_qat" else 1e-4 * float(np.abs(expected).max())
    np.testing.assert_allclose(found, expected, rtol=0, atol=tolerance)


def int8_step(interpreter: Any) -> float:
    """The largest quantization scale of the model's int8 tensors."""
    scales = [detail["quantization"][0] for detail in interpreter.get_tensor_details() if detail["dtype"] == np.int8]
    return float(max(scales)) * 1.001
