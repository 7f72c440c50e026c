"""Builds the C++ tests as they ship and under sanitizers, and runs them.

The address build runs everything under AddressSanitizer and UndefinedBehaviorSanitizer, with 500 mutated models (20,000
in the long mode); the thread build runs what uses threads under ThreadSanitizer.
"""

import functools
import os
import subprocess
from pathlib import Path

import pytest

from toolchains.compilers import Compiler, find_gcc
from toolchains.targets import BUILD, ROOT, ToolkitError, find_target

GOOGLETEST = Path("/usr/src/googletest")

ADDRESS = "address,undefined,float-cast-overflow"
BUILDS = {"release": "", "address": ADDRESS, "thread": "thread"}
TESTS = sorted(path.stem for path in (ROOT / "ops" / "tests").glob("*_test.cc") if path.stem != "abi_test")
# What each build is for. Counting allocations is no use under a sanitizer, which makes its own.
ONLY = {"thread": {"kernels_test", "threads_test"}}
NOT = {"address": {"allocation_test"}, "thread": set(), "release": set()}
CASES = [
    (build, test) for build in BUILDS for test in TESTS if test in ONLY.get(build, TESTS) and test not in NOT[build]
]


@functools.cache
def build_folder(build: str) -> Path:
    """Configures a build; returns its folder."""
    if not GOOGLETEST.is_dir():
        pytest.skip("no GoogleTest sources: install Debian's googletest")
    folder = BUILD / "tests" / build
    options = {"LITEBNN_BUILD_TESTS": "ON", "LITEBNN_SANITIZE": BUILDS[build]}
    if BUILDS[build]:
        run(*compiler().configure(folder, "Debug", CMAKE_CXX_FLAGS="-O1", **options))
    else:
        run(*compiler().configure(folder, **options))
    return folder


def compiler() -> Compiler:
    """This machine's compiler; skips the test where there is none."""
    try:
        return find_gcc(find_target("host"))
    except ToolkitError as error:
        pytest.skip(str(error))


def run(*command: str | Path, environment: dict[str, str] | None = None) -> str:
    """Runs a command; returns what it printed, and fails the test with that where the command fails."""
    result = subprocess.run(
        [str(part) for part in command],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=os.environ | (environment or {}),
    )
    assert result.returncode == 0, f"{' '.join(map(str, command))}\n{result.stdout[-8000:]}"
    return result.stdout


def run_test(build: str, test: str, environment: dict[str, str] | None = None) -> str:
    """Builds one C++ test and runs it."""
    folder = build_folder(build)
    run(*compiler().compile(folder, test))
    return run(folder / "ops" / "tests" / test, "--gtest_brief=1", environment=environment)


@pytest.mark.parametrize(("build", "test"), CASES)
def test_cpp(build: str, test: str) -> None:
    run_test(build, test)


@pytest.mark.long
def test_twenty_thousand_mutated_models() -> None:
    assert "20000 models" in run_test(
        "address", "mutation_test", {"LITEBNN_MUTATIONS": "20000", "LITEBNN_SEED": "1000"}
    )
