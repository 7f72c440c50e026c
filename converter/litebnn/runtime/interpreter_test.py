import importlib.util
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import litebnn
from litebnn.runtime.find import RUNTIMES

GOLDEN = Path(__file__).resolve().parents[3] / "tests" / "golden"

# Loaded into one process, TensorFlow and tflite-runtime break each other, so each runtime gets a process of its own.
IN_A_PROCESS = """
import sys
import numpy as np
import litebnn

runtime, golden = sys.argv[1:]
model, arrays = open(golden + ".lce.tflite", "rb").read(), np.load(golden + ".npz")
for threads in (1, 2):
    result = litebnn.Interpreter(model, threads, runtime=runtime).predict(arrays["input"])
    assert np.abs(result - arrays["lce"]).max() <= 1e-4 * np.abs(arrays["lce"]).max()

for size in range(8, len(model) - 8, 197):
    try:
        litebnn.Interpreter(model[:size], runtime=runtime)
    except ValueError as error:
        assert "the model is refused" in str(error), error
    else:
        raise AssertionError(f"{size} bytes of {len(model)} were taken for a model")
"""


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_every_runtime_runs_a_model_and_refuses_a_truncated_one(runtime: str) -> None:
    if not importlib.util.find_spec(RUNTIMES[runtime].partition(".")[0]):
        pytest.skip(f"{runtime} is not installed, or has no wheel for this Python")
    command = [sys.executable, "-c", IN_A_PROCESS, runtime, str(GOLDEN / "bitpacked_chain")]
    finished = subprocess.run(command, capture_output=True, text=True)
    assert finished.returncode == 0, finished.stderr[-2000:]


@pytest.fixture(scope="module")
def interpreter() -> litebnn.Interpreter:
    return litebnn.Interpreter(GOLDEN / "bias.lce.tflite")


def test_it_tells_shapes_and_types(interpreter: litebnn.Interpreter) -> None:
    golden = np.load(GOLDEN / "bias.npz")
    assert interpreter.input_shapes == [(1, *golden["input"].shape[1:])]
    assert interpreter.output_shapes == [(1, *golden["lce"].shape[1:])]
    assert interpreter.input_types == interpreter.output_types == [np.float32]
    assert interpreter.input_quantization == interpreter.output_quantization == [(0.0, 0)]


def test_it_predicts_any_number_of_samples(interpreter: litebnn.Interpreter) -> None:
    golden = np.load(GOLDEN / "bias.npz")
    three = np.concatenate([golden["input"][:1]] * 3)
    np.testing.assert_allclose(
        interpreter.predict(three), np.concatenate([golden["lce"][:1]] * 3), rtol=1e-4, atol=1e-4
    )


def test_wrong_input_is_an_error(interpreter: litebnn.Interpreter) -> None:
    image = np.load(GOLDEN / "bias.npz")["input"]
    with pytest.raises(ValueError, match="is float64, expected float32"):
        interpreter.predict(image.astype(np.float64))
    with pytest.raises(ValueError, match="has shape .* expected"):
        interpreter.predict(image[:, 1:])
    with pytest.raises(ValueError, match="2 inputs given, expected 1"):
        interpreter.predict([image, image])


def test_wrong_models_are_errors(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="lacks the identifier TFL3"):
        litebnn.Interpreter(b"not a model")
    with pytest.raises(FileNotFoundError):
        litebnn.Interpreter(tmp_path / "absent.tflite")


def test_wrong_options_are_errors() -> None:
    with pytest.raises(ValueError, match="num_threads is 0"):
        litebnn.load_delegate(num_threads=0)
    with pytest.raises(ValueError, match="sparc"):
        litebnn.load_delegate(isa="sparc")
