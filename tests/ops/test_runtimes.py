"""Runs the suite of tests/runtimes in the runtimes installed here and in the C library, also under sanitizers.

`invoke test --runtimes` runs it in every runtime that litebnn serves.
"""

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

from litebnn.runtime.find import RUNTIMES, find_library
from tests.runtimes import environments
from tests.support.cpp_builds import build_product
from toolchains.targets import ToolkitError

C_LIBRARY = "c-library"
PYTHON = Path(sys.executable)


@pytest.fixture(scope="module")
def cases(library: None) -> Path:
    return environments.write_cases()


def variable_of(runtime: str) -> str:
    """The runtime as the suite is told of it; skips where it is missing."""
    if runtime == C_LIBRARY:
        try:
            return environments.c_library()
        except ToolkitError as error:
            pytest.skip(f"the runtime's C library cannot be fetched: {error}")
    if not importlib.util.find_spec(RUNTIMES[runtime].partition(".")[0]):
        pytest.skip(f"pip install {runtime}")
    return runtime


@pytest.mark.parametrize("runtime", [*RUNTIMES, C_LIBRARY])
def test_runtime(runtime: str, cases: Path) -> None:
    # In a process of its own: the runtimes bring the same symbols.
    assert environments.run_suite(PYTHON, variable_of(runtime), cases, find_library()) == 0


@pytest.fixture(scope="module")
def sanitized() -> tuple[Path, dict[str, str]]:
    """The library under AddressSanitizer and UndefinedBehaviorSanitizer, and what the process that loads it needs."""
    folder = build_product("address-gcc", "litebnn")
    # The sanitizers have to be there before Python is, and to see libstdc++ where they intercept its exceptions.
    preload = []
    for name in ("libasan.so", "libubsan.so", "libstdc++.so"):
        found = subprocess.run(["c++", f"-print-file-name={name}"], capture_output=True, text=True, check=True).stdout
        if not Path(found.strip()).is_absolute():
            pytest.skip(f"the compiler has no {name} to load before Python: install g++")
        preload.append(found.strip())
    # Python itself ends with memory in use; leaks are looked for in the C++ tests.
    return folder / "liblitebnn.so", {"LD_PRELOAD": ":".join(preload), "ASAN_OPTIONS": "detect_leaks=0"}


@pytest.mark.parametrize("runtime", ["ai-edge-litert", C_LIBRARY])
def test_runtime_under_sanitizers(runtime: str, cases: Path, sanitized: tuple[Path, dict[str, str]]) -> None:
    library, variables = sanitized
    assert environments.run_suite(PYTHON, variable_of(runtime), cases, library, variables) == 0


def run_mutants(runtime: str, count: int, sanitized: tuple[Path, dict[str, str]]) -> int:
    library, variables = sanitized
    arguments = ["-m", "tests.runtimes.mutants", f"--count={count}"]
    return environments.run_python(PYTHON, arguments, variable_of(runtime), library, variables)


@pytest.mark.parametrize("runtime", ["ai-edge-litert", "tflite-runtime", C_LIBRARY])
def test_damaged_files_under_sanitizers(runtime: str, sanitized: tuple[Path, dict[str, str]]) -> None:
    assert run_mutants(runtime, 500, sanitized) == 0


@pytest.mark.long
def test_twenty_thousand_damaged_files_under_sanitizers(sanitized: tuple[Path, dict[str, str]]) -> None:
    assert run_mutants("ai-edge-litert", 20000, sanitized) == 0


def test_unknown_runtime_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        environments.main(["pytorch"])
    assert "no such runtime: pytorch" in capsys.readouterr().err
