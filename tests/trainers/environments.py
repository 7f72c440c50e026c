"""The environments (variables and Python packages) in which tests run processes that train networks with Keras or
PyTorch."""

import functools
import os
from pathlib import Path

import bootstrap
import tasks
from tests.needs import need

# The environment variables that select a Keras version and a backend of Keras 3. This process has the first from
# conftest.py, and the second from examples that a test imports.
KERAS_CHOICES = ("TF_USE_LEGACY_KERAS", "KERAS_BACKEND")
# Environment variables that limit frameworks to one thread. The networks are small, and the workers of pytest use all
# CPUs. On a busy machine, threads that wait for each other would take many times as long.
THREADS = {"OMP_NUM_THREADS": "1", "TF_NUM_INTRAOP_THREADS": "1", "TF_NUM_INTEROP_THREADS": "1"}
# The value of XLA_FLAGS with which JAX compiles a network in a fraction of the time, because XLA does not optimize it.
FAST_COMPILATION = "--xla_backend_optimization_level=0"


def without_keras_choice(**variables: str) -> dict[str, str]:
    """The environment variables of this process, plus `THREADS` and `variables`, but without the two that select a
    Keras version and its backend."""
    return {name: value for name, value in os.environ.items() if name not in KERAS_CHOICES} | THREADS | variables


def python_path(*folders: Path) -> str:
    """The value of PYTHONPATH with which a child process imports modules from `folders`, and starts Keras faster."""
    return os.pathsep.join([*map(str, folders), os.environ["PYTHONPATH"]])


# The packages that the tests add to the environment for PyTorch.
TORCH_PACKAGES = ("pytest>=8", "keras>=3.15", "tensorboard>=2.16")


@functools.cache
def torch_python() -> Path:
    """The Python of the environment for PyTorch, which is made if it does not exist, with TORCH_PACKAGES added."""
    need("pytorch")
    python = tasks.torch_python()
    with bootstrap.locked(tasks.TORCH_VENV):
        bootstrap.pip_install(tasks.TORCH_VENV, *TORCH_PACKAGES)
    return python
