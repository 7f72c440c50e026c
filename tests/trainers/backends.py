"""Programs of Keras 3 on the backend that they are given, of which a process has one."""

import os
import subprocess

from tests.trainers.torch_environment import torch_python
from toolchains.targets import ROOT

# The environment variable that names a Python with Keras 3, torch and litert-torch, to use instead of bootstrap's.
PYTHON_VARIABLE = "LITEBNN_KERAS_TORCH_PYTHON"


def torch_keras_python() -> str:
    """The Python with Keras 3 for the backends torch and jax, which litert-torch needs too."""
    return os.environ.get(PYTHON_VARIABLE) or str(torch_python("keras>=3.15"))


def run_on(backend: str, python: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Runs Python with a backend of Keras, with litebnn and the tests on its path."""
    variables = {"KERAS_BACKEND": backend, "PYTHONPATH": f"{ROOT / 'converter'}{os.pathsep}{ROOT}"}
    environment = {key: value for key, value in os.environ.items() if key != "TF_USE_LEGACY_KERAS"} | variables
    return subprocess.run([python, *arguments], capture_output=True, text=True, cwd=ROOT, env=environment)
