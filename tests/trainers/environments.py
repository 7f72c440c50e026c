"""The environments (variables and Python packages) in which tests run processes that train networks with Keras or
PyTorch."""

import os
from pathlib import Path

import bootstrap
from tests.needs import need

# The environment variables that select a Keras version and a backend of Keras 3. This process has the first from
# conftest.py, and the second from examples that a test imports.
KERAS_CHOICES = ("TF_USE_LEGACY_KERAS", "KERAS_BACKEND")


def without_keras_choice(**variables: str) -> dict[str, str]:
    """The environment variables of this process, plus `variables`, but without the two that select a Keras version and
    its backend."""
    return {name: value for name, value in os.environ.items() if name not in KERAS_CHOICES} | variables


def torch_python(*packages: str) -> Path:
    """The Python of the environment that bootstrap makes for PyTorch, with these packages added. Makes the environment
    if it does not exist."""
    need("pytorch")
    folder = bootstrap.TORCH_VENV
    with bootstrap.locked(folder):
        bootstrap.make_environment(folder)
        bootstrap.install(folder, ("torch", "demo"))
        if packages:
            bootstrap.pip_install(folder, *packages)
    return bootstrap.python_of(folder)
