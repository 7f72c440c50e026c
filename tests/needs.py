"""Requirements of tests: only this module turns a missing program or package into a skip.

Tests are marked `@pytest.mark.needs("valgrind")`. Fixtures, helpers and modules call `need`, and import packages that
may be missing with `imported`. The names of requirements are those of toolchains/needs.py.
"""

import importlib
from typing import Any

import pytest

from toolchains.needs import missing


def need(*names: str) -> None:
    """Skips the test, or the module that is being imported, if this machine lacks one of the requirements (programs and
    packages) in `names`."""
    for name in names:
        if reason := missing(name):
            pytest.skip(reason, allow_module_level=True)


def imported(module: str, name: str) -> Any:
    """Imports a module of the requirement `name`. Skips the test if the requirement is missing, but not if the import
    fails."""
    need(name)
    return importlib.import_module(module)
