"""The environment that bootstrap makes for PyTorch, in which the tests of its trainers run."""

import subprocess
import sys
from pathlib import Path

import pytest

import bootstrap

OLDEST_PYTHON = (3, 11)  # that litert-torch has wheels for


def torch_python(*packages: str) -> Path:
    """The environment's Python, with these packages too; makes it where it is not there.

    Skips where that would fetch CUDA, and where pip cannot.
    """
    if sys.version_info < OLDEST_PYTHON:
        pytest.skip("litert-torch has no wheels for this Python")
    folder = bootstrap.TORCH_VENV
    try:
        with bootstrap.locked(folder):
            bootstrap.make_environment(folder)
            if not (folder / "litebnn-torch.stamp").is_file() and bootstrap.cpu_torch(folder) is None:
                pytest.skip("pip finds no PyTorch for CPUs")
            bootstrap.install(folder, ("torch", "demo"))
            if packages:
                subprocess.run(bootstrap.pip(folder, "install", "--quiet", *packages), check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"the environment cannot be made: {error}")
    return bootstrap.python_of(folder)
