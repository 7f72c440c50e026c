from pathlib import Path

import numpy as np
import pytest

import litebnn

GOLDEN = Path(__file__).resolve().parents[3] / "tests" / "golden"


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


@pytest.mark.parametrize("runtime", ["ai-edge-litert", "tflite-runtime", "tensorflow"])
@pytest.mark.parametrize("threads", [1, 2])
def test_it_runs_in_every_runtime(runtime: str, threads: int) -> None:
    if runtime == "tflite-runtime":
        pytest.importorskip("tflite_runtime", reason="tflite-runtime has no wheel for this Python")
    golden = np.load(GOLDEN / "bitpacked_chain.npz")
    predicted = litebnn.Interpreter(GOLDEN / "bitpacked_chain.lce.tflite", threads, runtime=runtime).predict(
        golden["input"]
    )
    assert np.abs(predicted - golden["lce"]).max() <= 1e-4 * np.abs(golden["lce"]).max()


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
    truncated = (GOLDEN / "bias.lce.tflite").read_bytes()[:1000]
    with pytest.raises(ValueError, match="refused"):
        litebnn.Interpreter(truncated)


def test_wrong_options_are_errors() -> None:
    with pytest.raises(ValueError, match="num_threads is 0"):
        litebnn.load_delegate(num_threads=0)
    with pytest.raises(ValueError, match="sparc"):
        litebnn.load_delegate(isa="sparc")
