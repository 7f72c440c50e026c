"""pytest's options for the whole project."""

import contextlib
import os
from collections.abc import Iterator
from typing import Any

import pytest

# larq needs Keras 2; both are read when TensorFlow is imported.
os.environ.setdefault("TF_USE_LEGACY_KERAS", "1")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

# Who comes first has the symbols that both define: behind TensorFlow, tflite-runtime would run some of its code.
with contextlib.suppress(ImportError):
    import tflite_runtime.interpreter  # noqa: F401


# How long an example takes is no test's matter; the Pythons of other runtimes have no hypothesis.
with contextlib.suppress(ImportError):
    import hypothesis

    hypothesis.settings.register_profile("litebnn", deadline=None)
    hypothesis.settings.load_profile("litebnn")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--long", action="store_true", help="also run the tests marked long")
    parser.addoption("--target", action="append", help="what to emulate in tests/emulated, instead of rpi4 and rpi3")


def pytest_configure(config: pytest.Config) -> None:
    targets = config.getoption("--target")
    if not targets:
        return
    # The Pythons of other runtimes and CPUs read this file too, and have not all that the toolkit needs.
    from toolchains.targets import ToolkitError, find_target

    try:
        for name in targets:
            find_target(name)
    except ToolkitError as error:
        raise pytest.UsageError(str(error)) from error


def pytest_make_parametrize_id(val: object) -> str | None:
    """Archives hold the time at which they were made, and all workers have to find the same names of tests."""
    return f"{len(val)} bytes" if isinstance(val, bytes) else None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("--long"):
        return
    for item in items:
        if item.get_closest_marker("long"):
            item.add_marker(pytest.mark.skip(reason="takes minutes: invoke test --long"))


@pytest.fixture(scope="session")
def library() -> None:
    """For tests that run binary models in Python: skips where the op library or a runtime is missing."""
    from litebnn.runtime.find import find_library, find_runtime

    try:
        find_library()
        find_runtime()
    except (FileNotFoundError, ImportError) as error:
        pytest.skip(str(error))


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """The system's Chromium."""
    from tests.report.browser import chromium

    try:
        with chromium() as found:
            yield found
    except FileNotFoundError as error:
        pytest.skip(str(error))
