"""The environments in which tests run processes that choose a trainer: variables, and packages."""

import os
from pathlib import Path

import bootstrap
from tests.needs import need

# conftest.py sets the first variable for this process, and examples that a test imports set the second.
KERAS_CHOICES = ("TF_USE_LEGACY_KERAS", "KERAS_BACKEND")


def without_keras_choice(**variables: str) -> dict[str, str]:
    """This process's variables without its choice of a Keras and a backend, but with `variables`."""
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
