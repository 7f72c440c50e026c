"""Compares converted networks of litebnn.keras on each backend with the trainer's outputs, and with the same networks
in larq."""

import importlib
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import litebnn
from tests.needs import imported, need
from tests.trainers.environments import FAST_COMPILATION, python_path, torch_python, without_keras_choice
from toolchains.targets import ROOT

# The environment variable that names a Python with Keras 3, torch and litert-torch, to use instead of bootstrap's.
PYTHON_VARIABLE = "LITEBNN_KERAS_TORCH_PYTHON"


@pytest.fixture(scope="module")
def torch_keras() -> str:
    """The Python with Keras 3 on torch."""
    return os.environ.get(PYTHON_VARIABLE) or str(torch_python())


def run(python: str, backend: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = without_keras_choice(KERAS_BACKEND=backend, PYTHONPATH=python_path(ROOT / "converter", ROOT))
    return subprocess.run([python, *arguments], capture_output=True, text=True, cwd=ROOT, env=environment)


def make_networks(kind: str, backend: str, python: str, folder: Path, count: int) -> Path:
    """Makes random networks with a trainer. Returns the folder with the trainer's outputs and the conversions."""
    folder.mkdir()
    program = ("-m", "tests.support.keras_networks", kind, str(folder), "0", str(count))
    result = run(python, backend, *program)
    assert result.returncode == 0, result.stderr[-3000:]
    return folder


@pytest.fixture(scope="module")
def larq_networks(tmp_path_factory: pytest.TempPathFactory, networks: int) -> Path:
    need("larq")
    return make_networks("larq", "tensorflow", sys.executable, tmp_path_factory.mktemp("networks") / "larq", networks)


@pytest.mark.deep
@pytest.mark.usefixtures("library")
@pytest.mark.parametrize("backend", ["tensorflow", "torch"])
def test_random_networks_compute_what_keras_does_and_are_as_small_as_larqs(
    backend: str, larq_networks: Path, networks: int, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    python = sys.executable if backend == "tensorflow" else request.getfixturevalue("torch_keras")
    folder = make_networks("keras", backend, python, tmp_path / backend, networks)
    for seed in range(networks):
        data, path = np.load(folder / f"{seed}.npz"), folder / f"{seed}.tflite"
        assert np.count_nonzero(data["binary"]) == data["expected"], seed
        if backend == "torch":
            assert sorted(data["named"]) == sorted(name for name in data["layers"] if name in data["named"]), seed
        outputs = litebnn.Interpreter(path).predict(data["x"])
        np.testing.assert_allclose(outputs, data["y"], atol=1e-4, err_msg=str(seed))
        np.testing.assert_allclose(data["y"], np.load(larq_networks / f"{seed}.npz")["y"], atol=1e-4, err_msg=str(seed))
        assert path.stat().st_size <= (larq_networks / f"{seed}.tflite").stat().st_size + 1024, seed


@pytest.mark.deep
def test_the_torch_backend_has_everything_that_tensorflow_has(torch_keras: str, tmp_path: Path) -> None:
    """The test checks the quantizers' values and gradients, training with Bop, flip ratios and saved models."""
    result = run(torch_keras, "torch", "-m", "tests.support.keras_backend", str(tmp_path))
    assert result.returncode == 0, result.stderr[-3000:]


@pytest.mark.deep
@pytest.mark.usefixtures("library")
def test_inputs_and_outputs_of_the_torch_backend_come_in_order_and_by_name(torch_keras: str) -> None:
    result = run(torch_keras, "torch", "-m", "tests.support.keras_interfaces", "torch", "0", "6")
    assert result.returncode == 0, result.stderr[-3000:]


@pytest.mark.deep
def test_jax_trains_and_says_that_it_cannot_export(tmp_path: Path) -> None:
    need("jax")
    result = run(sys.executable, "jax", "-m", "tests.support.keras_backend", str(tmp_path))
    assert result.returncode == 0, result.stderr[-3000:]
    convert = ("-m", "litebnn", "convert", str(tmp_path / "model.keras"), "-o", str(tmp_path / "out.tflite"))
    converted = run(sys.executable, "jax", *convert)
    assert converted.returncode == 1
    assert converted.stderr.count("\n") == 1
    assert 'the backend "jax", which cannot export: set KERAS_BACKEND=tensorflow or torch' in converted.stderr


@pytest.fixture(scope="module")
def on_tensorflow() -> dict[str, Any]:
    """The outputs of the zoo's networks on TensorFlow."""
    outputs: dict[str, Any] = imported("tests.trainers.zoo_on_backend", "keras").outputs()
    return outputs


@pytest.mark.deep
@pytest.mark.parametrize("backend", ["torch", "jax"])
def test_the_zoo_computes_what_it_does_on_tensorflow(
    backend: str, on_tensorflow: dict[str, Any], torch_keras: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAX_ENABLE_X64", "1")
    monkeypatch.setenv("XLA_FLAGS", FAST_COMPILATION)
    result = run(torch_keras, backend, "-m", "tests.trainers.zoo_on_backend", str(tmp_path / "outputs.npz"))
    assert result.returncode == 0, result.stderr[-3000:]
    found = np.load(tmp_path / "outputs.npz")
    for name, values in on_tensorflow.items():
        assert np.ptp(values) > 0.01, name
        np.testing.assert_allclose(found[name], values, rtol=1e-5, atol=1e-5, err_msg=name)


def test_without_keras_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "keras", None)
    for name in [name for name in sys.modules if name.startswith("litebnn.keras")]:
        monkeypatch.delitem(sys.modules, name)
    with pytest.raises(ImportError, match=r"litebnn\.keras needs Keras 3 .*pip install 'litebnn\[keras\]'"):
        importlib.import_module("litebnn.keras")


@pytest.mark.deep
def test_importing_imports_keras_and_nothing_else() -> None:
    code = """
        import sys, litebnn
        assert "keras" not in sys.modules and "tensorflow" not in sys.modules
        import litebnn.keras
        assert not {"larq", "tf_keras", "litert_torch"} & set(sys.modules)
    """
    need("keras")
    result = run(sys.executable, "tensorflow", "-c", "\n".join(line.strip() for line in code.splitlines()))
    assert result.returncode == 0, result.stderr


def test_a_backend_that_lacks_its_exporter_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    keras = imported("keras", "keras")
    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(2)])
    monkeypatch.setattr(keras.config, "backend", lambda: "torch")
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(litebnn.ConversionError, match="from the torch backend needs pip install litert-torch"):
        litebnn.convert_keras_model(model)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: name)
    monkeypatch.setattr(keras, "__version__", "3.12.0")
    with pytest.raises(litebnn.ConversionError, match="Keras 3.12.0 cannot export from the torch backend"):
        litebnn.convert_keras_model(model)
