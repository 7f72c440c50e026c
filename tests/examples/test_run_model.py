"""Tests that the program run_model computes the same outputs as the Python interpreter."""

import subprocess
from pathlib import Path

import numpy as np
import pytest

import litebnn
from litebnn.runtime.predictor import arrays_of
from tests.support.float_models import FloatModel, counting_model, recurrent_model
from tests.support.programs import GOLDEN, RUNTIMES, host_programs
from toolchains.targets import ROOT


@pytest.fixture(params=RUNTIMES)
def program(request) -> Path:
    return request.param() / "run_model"


def run(program: Path, content: bytes, *flags: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run([program, *flags], input=content, capture_output=True, timeout=60)


@pytest.mark.usefixtures("library")
def test_runs_as_often_as_there_are_inputs(program: Path) -> None:
    model = ROOT / "examples" / "label_image" / "digits.tflite"
    images = np.random.default_rng(0).standard_normal((5, 28, 28, 1)).astype(np.float32)
    done = run(program, images.tobytes(), f"--graph={model}", "--lcompute=1")
    assert done.returncode == 0, done.stderr
    found = np.frombuffer(done.stdout, np.float32).reshape(5, 10)
    assert np.allclose(found, litebnn.Interpreter(model).predict(images), atol=1e-4)


@pytest.mark.usefixtures("library")
def test_golden_models_of_any_inputs_and_outputs(program: Path) -> None:
    for model in GOLDEN:
        interpreter = litebnn.Interpreter(model)
        rng = np.random.default_rng(0)
        arrays = [
            rng.integers(-100, 100, shape).astype(dtype) if dtype.kind == "i" else rng.normal(size=shape).astype(dtype)
            for shape, dtype in zip(interpreter.input_shapes, interpreter.input_types, strict=True)
        ]
        done = run(program, b"".join(array.tobytes() for array in arrays), f"--graph={model}", "--lcompute=1")
        if "newer runtime" in done.stderr.decode():
            continue
        assert done.returncode == 0, done.stderr
        expected = arrays_of(interpreter.predict(arrays))
        assert len(done.stdout) == sum(each.nbytes for each in expected), model.name


def test_variables_that_are_resources_begin_anew_with_each_run(program: Path, tmp_path: Path) -> None:
    model = tmp_path / "counting.tflite"
    model.write_bytes(counting_model())
    for flags, expected in (([], [1, 1, 1]), (["--keep_state=1"], [1, 2, 3])):
        done = run(program, np.arange(12, dtype=np.float32).tobytes(), f"--graph={model}", *flags)
        assert done.returncode == 0, done.stderr
        found = np.frombuffer(done.stdout, np.float32).reshape(3, 4) - np.arange(12).reshape(3, 4)
        assert found.tolist() == [[count] * 4 for count in expected]


@pytest.mark.usefixtures("library")
@pytest.mark.parametrize("keep_state", [False, True])
def test_the_state_of_an_lstm_begins_anew_with_each_run(program: Path, tmp_path: Path, keep_state: bool) -> None:
    model = tmp_path / "recurrent.tflite"
    model.write_bytes(litebnn.convert_tflite(recurrent_model()))
    samples = np.random.default_rng(0).standard_normal((4, 3, 32)).astype(np.float32)
    done = run(program, samples.tobytes(), f"--graph={model}", "--lcompute=1", f"--keep_state={int(keep_state)}")
    if program.parent == host_programs():
        assert "it loads no tensors that are variables" in done.stderr.decode()
        return
    assert done.returncode == 0, done.stderr
    expected = litebnn.Interpreter(model, keep_state=keep_state).predict(samples)
    np.testing.assert_allclose(np.frombuffer(done.stdout, np.float32).reshape(4, 4), expected, atol=1e-4)


def test_a_model_that_leaves_sizes_open_is_refused(program: Path, tmp_path: Path) -> None:
    path = tmp_path / "open.tflite"
    model = FloatModel()
    path.write_bytes(model.finish(model.elementwise("ABS", model.input(1, 1, 1, 3, signature=(-1, -1, -1, 3)))))
    done = run(program, bytes(12), f"--graph={path}")
    assert (done.returncode, done.stdout) == (1, b"")
    assert f"error: {path}: the input input_1 leaves its size open" in done.stderr.decode()
    fixed = tmp_path / "fixed.tflite"
    model = FloatModel()
    fixed.write_bytes(model.finish(model.elementwise("ABS", model.input(1, 1, 1, 3, signature=(-1, 1, 1, 3)))))
    assert run(program, bytes(12), f"--graph={fixed}").returncode == 0


def test_what_it_cannot_do_is_one_line(program: Path) -> None:
    model = f"--graph={ROOT / 'examples' / 'label_image' / 'digits.tflite'}"
    for content, flags, message in (
        (b"", [], "name the model with --graph=FILE"),
        (b"", ["--graph=/nowhere"], "/nowhere"),
        (bytes(28 * 28 * 4 + 5), [model, "--lcompute=1"], "stdin ends in the middle of a run: 5 of 3136 bytes of"),
    ):
        done = run(program, content, *flags)
        assert done.returncode == 1
        (line,) = [line for line in done.stderr.decode().splitlines() if line.startswith("error: ")]
        assert message in line
    assert run(program, b"", model, "--lcompute=1").stdout == b""
