"""pytest's options for the whole project."""

import contextlib
import os
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

# The first variable gives larq the Keras 2 that it needs. Both variables must be set before TensorFlow is imported.
os.environ.setdefault("TF_USE_LEGACY_KERAS", "1")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

# The import makes Python and Keras start faster in this process, and PYTHONPATH in child processes.
import tests.support.quick_start.sitecustomize  # noqa: F401

QUICK_START = str(Path(__file__).parent / "tests" / "support" / "quick_start")
if QUICK_START not in os.environ.get("PYTHONPATH", "").split(os.pathsep):
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (QUICK_START, os.environ.get("PYTHONPATH"))))

# tflite-runtime must be loaded before TensorFlow. Both define the same symbols, and both use the definition that was
# loaded first.
with contextlib.suppress(ImportError):
    import tflite_runtime.interpreter  # noqa: F401


# Property tests have no deadline for an example. Pythons of other runtimes lack hypothesis.
with contextlib.suppress(ImportError):
    import hypothesis

    hypothesis.settings.register_profile("litebnn", deadline=None)
    hypothesis.settings.load_profile("litebnn")

KERAS_PACKAGE = Path(__file__).parent / "converter" / "litebnn" / "keras"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--deep", action="store_true", help="also run the tests marked deep")
    parser.addoption("--long", action="store_true", help="run all tests, also those marked long")
    parser.addoption("--remaining", action="store_true", help="leave out the tests that passed in the run before")
    parser.addoption("--target", action="append", help="what to emulate in tests/emulated, instead of rpi4 and rpi3")


def pytest_configure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(_Passed(config))
    targets = config.getoption("--target")
    if not targets:
        return
    # The import is inside this function, because the Pythons of other runtimes and CPUs read this file too. They lack
    # packages that the toolkit needs.
    from toolchains.needs import missing
    from toolchains.targets import ToolkitError, find_system_target

    try:
        for name in targets:
            find_system_target(name)
    except ToolkitError as error:
        raise pytest.UsageError(str(error)) from error
    # The user requests these tests, so a missing requirement is an error and not a skip.
    if reason := missing("debian"):
        raise pytest.UsageError(reason)


def pytest_make_parametrize_id(val: object) -> str | None:
    """Names a test by the number of bytes of its argument.

    Archives contain the time, and all workers must give tests the same names.
    """
    return f"{len(val)} bytes" if isinstance(val, bytes) else None


class _KerasModule(pytest.Module):
    """A module of tests in the package litebnn.keras.

    pytest imports the package, which needs Keras, before the module can state its requirement.
    """

    def collect(self) -> Iterable[pytest.Item | pytest.Collector]:
        from tests.needs import need

        need("keras")
        return super().collect()


def pytest_pycollect_makemodule(module_path: Path, parent: pytest.Collector) -> pytest.Module | None:
    is_inside = KERAS_PACKAGE in module_path.parents
    return _KerasModule.from_parent(parent, path=module_path) if is_inside else None


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    # A test of another tier is skipped anyway, so its requirements are not looked for.
    for marker in item.iter_markers("needs") if not item.get_closest_marker("skip") else ():
        from tests.needs import need

        need(*marker.args)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[object]:
    """Skips a test that runs a binary model if the op library is missing."""
    try:
        return (yield)
    except Exception as raised:
        from litebnn.runtime.find import LIBRARY_NAME

        error: BaseException | None = raised
        while error is not None:
            if isinstance(error, FileNotFoundError) and str(error).startswith(f"{LIBRARY_NAME} not found"):
                pytest.skip(str(error))
            error = error.__cause__ or error.__context__
        raise


# The name in pytest's cache of the list of tests that passed in the last run.
PASSED = "litebnn/passed"


def _cache(config: pytest.Config) -> pytest.Cache | None:
    """pytest's cache; None with `-p no:cacheprovider`."""
    return getattr(config, "cache", None)


class _Passed:
    """Records the tests that pass. xdist reports the tests of all workers to the process that starts the workers."""

    def __init__(self, config: pytest.Config) -> None:
        self.cache = _cache(config)
        self.names: list[str] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call" and report.passed:
            self.names.append(report.nodeid)

    def pytest_sessionfinish(self) -> None:
        if self.cache:
            self.cache.set(PASSED, self.names)


def _are_deep(config: pytest.Config) -> bool:
    """True if deep tests run: all of them, or those of a target that the user requests."""
    return any(map(config.getoption, ("--deep", "--long", "--target")))


def _passed_before(config: pytest.Config) -> set[str]:
    """The tests that passed in the run before; none without `--remaining`."""
    cache = _cache(config) if config.getoption("--remaining") else None
    return set(cache.get(PASSED, [])) if cache else set()


def _leave_out_passed(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leaves out the tests that passed in the run before, except those that do more in the deep tier."""
    names = _passed_before(config)
    parts: dict[bool, list[pytest.Item]] = {True: [], False: []}
    for item in items:
        parts[item.nodeid in names and "are_deep" not in item.fixturenames].append(item)
    config.hook.pytest_deselected(items=parts[True])
    items[:] = parts[False]


def _put_deep_files_first(items: list[pytest.Item]) -> None:
    """Puts files first whose tests are mostly deep. At the end of a run, the worker of such a file would work alone."""
    counts: dict[Path, Counter[bool]] = {}
    for item in items:
        counts.setdefault(item.path, Counter())[item.get_closest_marker("deep") is not None] += 1
    items.sort(key=lambda item: counts[item.path][True] <= counts[item.path][False])


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("--remaining"):
        _leave_out_passed(config, items)
    tiers = {"long": config.getoption("--long"), "deep": _are_deep(config)}
    if tiers["deep"]:
        _put_deep_files_first(items)
    for item in items:
        for tier in [tier for tier, is_run in tiers.items() if not is_run]:
            if item.get_closest_marker(tier):
                item.add_marker(pytest.mark.skip(reason=f"{tier}: invoke test --{tier}"))


@pytest.fixture(scope="session")
def are_deep(pytestconfig: pytest.Config) -> bool:
    """True if the deep tests run too."""
    return _are_deep(pytestconfig)


@pytest.fixture(scope="session")
def library() -> None:
    """Skips tests that run binary models in other processes, or build for long first, if the op library is missing."""
    from tests.needs import need

    need("library")


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """The system's Chromium as Playwright's browser; skips the tests without it."""
    from tests.needs import need
    from tests.report.browser import chromium

    need("playwright", "chromium")
    with chromium() as found:
        yield found
