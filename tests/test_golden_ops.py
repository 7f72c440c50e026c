"""The golden models, written by Larq Compute Engine, run through the delegate in every installed runtime."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import litebnn
from litebnn.runtime.find import RUNTIMES, find_runtime

GOLDEN = Path(__file__).parent / "golden"
NAMES = sorted(path.name.removesuffix(".lce.tflite") for path in GOLDEN.glob("*.lce.tflite"))


@pytest.fixture(scope="module", params=RUNTIMES)
def runtime(request: pytest.FixtureRequest) -> Any:
    try:
        return find_runtime(request.param)
    except ImportError as error:
        pytest.skip(str(error))


def test_there_are_26() -> None:
    assert len(NAMES) == 26


@pytest.mark.parametrize("name", NAMES)
def test_golden_model(name: str, runtime: Any) -> None:
    interpreter = runtime.Interpreter(
        str(GOLDEN / f"{name}.lce.tflite"), experimental_delegates=[litebnn.load_delegate(num_threads=2)]
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
    # All of these models give float32; the int8 one dequantizes its last int8 values, which may differ by one.
    largest = float(np.abs(expected).max())
    tolerance = result_step(interpreter) if name == "int8_qat" else 1e-4 * largest
    np.testing.assert_allclose(found, expected, rtol=0, atol=tolerance)


def result_step(interpreter: Any) -> float:
    """The largest quantization step of the model's int8 tensors."""
    scales = [d["quantization"][0] for d in interpreter.get_tensor_details() if d["dtype"] == np.int8]
    return max(scales) * 1.001
