"""Runs the suite of tests/runtimes in the runtimes installed here and in the C library.

`invoke test --runtimes` runs it in every runtime that litebnn serves.
"""

import importlib.util
import sys
from pathlib import Path

import pytest

from litebnn.runtime.find import RUNTIMES, find_library
from tests.runtimes import environments
from toolchains.targets import ToolkitError

C_LIBRARY = "c-library"


@pytest.fixture(scope="module")
def cases(library: None) -> Path:
    return environments.write_cases()


@pytest.mark.parametrize("runtime", [*RUNTIMES, C_LIBRARY])
def test_runtime(runtime: str, cases: Path) -> None:
    if runtime == C_LIBRARY:
        try:
            runtime = environments.c_library()
        except ToolkitError as error:
            pytest.skip(f"the runtime's C library cannot be fetched: {error}")
    elif not importlib.util.find_spec(RUNTIMES[runtime].partition(".")[0]):
        pytest.skip(f"pip install {runtime}")
    # In a process of its own: the runtimes bring the same symbols.
    assert environments.run_suite(Path(sys.executable), runtime, cases, find_library()) == 0


def test_unknown_runtime_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        environments.main(["pytorch"])
    assert "no such runtime: pytorch" in capsys.readouterr().err
