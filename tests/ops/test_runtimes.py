"""Runs the suite of tests/runtimes in the runtimes installed here and in the C library, also with sanitizers.

`invoke test --runtimes` runs this suite in every runtime that litebnn serves.
"""

import sys
from pathlib import Path

import pytest

from litebnn.runtime.find import RUNTIMES, find_library
from tests.needs import need
from tests.runtimes import environments
from tests.support.cpp_builds import build_products, preloaded, sanitizing_compiler

C_LIBRARY = "c-library"
PYTHON = Path(sys.executable)


@pytest.fixture(scope="module")
def cases(library: None) -> Path:
    return environments.write_cases()


def variable_of(runtime: str) -> str:
    """The value of LITEBNN_RUNTIME for a runtime; skips the test if the runtime is missing."""
    need("npm-registry" if runtime == C_LIBRARY else runtime)
    return environments.c_library() if runtime == C_LIBRARY else runtime


@pytest.mark.deep
@pytest.mark.parametrize("runtime", [*RUNTIMES, C_LIBRARY])
def test_runtime(runtime: str, cases: Path) -> None:
    # The suite runs in a separate process, because different runtimes define the same symbols.
    assert environments.run_suite(PYTHON, variable_of(runtime), cases, find_library()) == 0


@pytest.fixture(scope="module")
def sanitized() -> tuple[Path, dict[str, str]]:
    """The library built with AddressSanitizer and UndefinedBehaviorSanitizer, and environment variables to load it."""
    need("gcc-sanitizers")
    return build_products("address", "litebnn") / "liblitebnn.so", preloaded(sanitizing_compiler().name)


@pytest.mark.deep
@pytest.mark.parametrize("runtime", ["ai-edge-litert", C_LIBRARY])
def test_runtime_under_sanitizers(runtime: str, cases: Path, sanitized: tuple[Path, dict[str, str]]) -> None:
    library, variables = sanitized
    assert environments.run_suite(PYTHON, variable_of(runtime), cases, library, variables) == 0


def run_mutants(runtime: str, count: int, sanitized: tuple[Path, dict[str, str]]) -> int:
    library, variables = sanitized
    arguments = ["-m", "tests.runtimes.mutants", f"--count={count}"]
    return environments.run_python(PYTHON, arguments, variable_of(runtime), library, variables)


@pytest.mark.deep
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
