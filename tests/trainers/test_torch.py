"""litebnn.torch and convert_torch_model, in the environment that bootstrap makes for PyTorch."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import bootstrap
from tests.trainers.random_networks import SEEDS, random_network
from toolchains.targets import ROOT

OLDEST_PYTHON = (3, 11)  # that litert-torch has wheels for
SUITE = ("-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "-W", "ignore", "tests/trainers/torch_suite.py")


@pytest.fixture(scope="module")
def converted(library: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with the random networks as the suite has converted them, which passed."""
    if sys.version_info < OLDEST_PYTHON:
        pytest.skip("litert-torch has no wheels for this Python")
    python = _python()
    folder = tmp_path_factory.mktemp("converted")
    variables = {"LITEBNN_CONVERTED": str(folder), "PYTHONPATH": str(ROOT)}
    assert subprocess.run([python, *SUITE], cwd=ROOT, env=os.environ | variables).returncode == 0
    return folder


def _python() -> Path:
    """The Python of the environment, which is made where it is not there; skips where that would fetch CUDA."""
    folder = bootstrap.TORCH_VENV
    python = bootstrap.python_of(folder)
    try:
        with bootstrap.locked(folder):
            bootstrap.make_environment(folder)
            if not (folder / "litebnn-torch.stamp").is_file() and bootstrap.cpu_torch(folder) is None:
                pytest.skip("pip finds no PyTorch for CPUs")
            bootstrap.install(folder, ("torch", "demo"))
            if subprocess.run([python, "-c", "import pytest"], capture_output=True).returncode:
                subprocess.run(bootstrap.pip(folder, "install", "--quiet", "pytest>=8"), check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"the environment cannot be made: {error}")
    return python


def test_the_suite_passes_and_files_are_as_small_as_larqs(converted: Path) -> None:
    pytest.importorskip("larq", reason="needs larq: python3 bootstrap.py test")
    import litebnn
    from tests.trainers.larq_network import larq_network

    for seed in SEEDS:
        model = litebnn.convert_keras_model(larq_network(random_network(seed)))
        assert abs((converted / f"{seed}.tflite").stat().st_size - len(model)) <= 1024, seed


def test_without_pytorch_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    import litebnn

    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(litebnn.ConversionError, match=r'pip install "litebnn\[torch\]"'):
        litebnn.convert_torch_model(object(), [])
    monkeypatch.delitem(sys.modules, "litebnn.torch", raising=False)
    with pytest.raises(ImportError, match=r'needs PyTorch: pip install "litebnn\[torch\]"'):
        import litebnn.torch
