"""Tests litebnn.torch and convert_torch_model, in the environment that bootstrap makes for PyTorch."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.needs import need
from tests.trainers.environments import python_path, torch_python, without_keras_choice
from tests.trainers.random_networks import random_network
from toolchains.targets import ROOT

SUITE = ("-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "-W", "ignore")


@pytest.fixture(scope="module")
def converted(library: None, networks: int, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Runs the suite for PyTorch, and returns the folder with the random networks that it converted."""
    python = torch_python()
    folder = tmp_path_factory.mktemp("converted")
    environment = without_keras_choice(
        LITEBNN_CONVERTED=str(folder), LITEBNN_NETWORKS=str(networks), PYTHONPATH=python_path(ROOT)
    )
    suite = [python, *SUITE, "tests/trainers/torch_suite.py"]
    assert subprocess.run(suite, cwd=ROOT, env=environment).returncode == 0
    return folder


@pytest.mark.deep
def test_the_suite_passes_and_files_are_as_small_as_larqs(converted: Path, networks: int) -> None:
    need("larq")
    import litebnn
    from tests.trainers.larq_network import larq_network

    for seed in range(networks):
        model = litebnn.convert_keras_model(larq_network(random_network(seed)))
        assert (converted / f"{seed}.tflite").stat().st_size <= len(model) + 1024, seed


@pytest.mark.deep
@pytest.mark.usefixtures("library")
def test_the_zoo_computes_what_keras_does_and_converts(pytestconfig: pytest.Config) -> None:
    python = torch_python()
    environment = without_keras_choice(PYTHONPATH=python_path(ROOT), KERAS_BACKEND="torch")
    environment |= {"LITEBNN_WHOLE": "1"} if pytestconfig.getoption("--long") else {}
    suite = [python, *SUITE, "tests/trainers/torch_zoo_suite.py"]
    assert subprocess.run(suite, cwd=ROOT, env=environment).returncode == 0


def test_without_pytorch_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    import litebnn

    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(litebnn.ConversionError, match=r'pip install "litebnn\[torch\]"'):
        litebnn.convert_torch_model(object(), [])
    monkeypatch.delitem(sys.modules, "litebnn.torch", raising=False)
    with pytest.raises(ImportError, match=r'needs PyTorch: pip install "litebnn\[torch\]"'):
        import litebnn.torch
