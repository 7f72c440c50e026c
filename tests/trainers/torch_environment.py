"""The environment that bootstrap makes for PyTorch, in which the tests of its trainers run."""

from pathlib import Path

import bootstrap
from tests.needs import need


def torch_python(*packages: str) -> Path:
    """The Python of the environment for PyTorch, with these packages added. Makes the environment if it does not
    exist."""
    need("pytorch")
    folder = bootstrap.TORCH_VENV
    with bootstrap.locked(folder):
        bootstrap.make_environment(folder)
        bootstrap.install(folder, ("torch", "demo"))
        if packages:
            bootstrap.pip_install(folder, *packages)
    return bootstrap.python_of(folder)
