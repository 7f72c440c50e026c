"""Builds the C++ tests as they ship and under sanitizers, and runs them.

The address build runs all tests under AddressSanitizer and UndefinedBehaviorSanitizer, with 500 mutated models (20,000
in the long mode). The thread build runs tests of threads under ThreadSanitizer.
"""

import re

import pytest

from tests.support.cpp_builds import BUILDS, build_products, run
from toolchains.targets import ROOT

FOLDER = ROOT / "ops" / "tests"
TESTS = [
    "allocation_test",
    "failed_allocation_test",
    "kernels_test",
    "litert_test",
    "mutation_test",
    "ops_test",
    "partition_test",
    "prepare_time_test",
    "threads_test",
]
# For each build, the tests that run in it. Tests that count allocations or measure time make no sense with a sanitizer.
ONLY = {"thread": {"kernels_test", "threads_test"}}
NOT = {"address": {"allocation_test", "failed_allocation_test", "prepare_time_test"}}
# For a build and a test program, GoogleTest's filter for the cases to run; without a filter, all cases run. The thread
# build runs only a selection, because all shapes share memory among threads in the same way.
FILTERS = {("thread", "kernels_test"): "*hread*:*itpack*:*axPool*:*GateImages*"}
PROGRAMS = [
    (build, test)
    for build in ("release", *BUILDS)
    for test in TESTS
    if test in ONLY.get(build, TESTS) and test not in NOT.get(build, ())
]
# The C++ tests of the quick tier: those of the kernels and of the ops.
QUICK = [("release", "kernels_test"), ("release", "ops_test")]
CASES = [pytest.param(*program, marks=[] if program in QUICK else pytest.mark.deep) for program in PROGRAMS]


def run_test(build: str, test: str, programs: list[tuple[str, str]], environment: dict[str, str] | None = None) -> str:
    """Runs a C++ test of a build. The first call for a build compiles all of its programs."""
    folder = build_products(build, *(name for each, name in programs if each == build)) / "ops" / "tests"
    assert sorted((folder / "programs.txt").read_text(encoding="utf-8").split()) == TESTS
    chosen = f"--gtest_filter={FILTERS.get((build, test), '*')}"
    return run(folder / test, "--gtest_brief=1", chosen, environment=environment)


@pytest.mark.parametrize(("build", "test"), CASES)
def test_cpp(build: str, test: str, are_deep: bool) -> None:
    run_test(build, test, PROGRAMS if are_deep else QUICK)


def test_every_file_is_compiled() -> None:
    described = (FOLDER / "CMakeLists.txt").read_text(encoding="utf-8")
    files = [path.relative_to(FOLDER).with_suffix("") for path in FOLDER.rglob("*_test.cc") if path.stem != "abi_test"]
    # CMake itself looks for the files of this folder.
    listed = [name.as_posix() for name in files if name.parent.name != "partition"]
    assert len(listed) > 20
    assert [name for name in listed if not re.search(rf"(?<![\w/]){name}\b", described)] == []


@pytest.mark.deep
@pytest.mark.long
def test_twenty_thousand_mutated_models() -> None:
    variables = {"LITEBNN_MUTATIONS": "20000", "LITEBNN_SEED": "1000"}
    assert "20000 models" in run_test("address", "mutation_test", PROGRAMS, variables)
