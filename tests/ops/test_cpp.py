"""Builds the C++ tests as they ship and under sanitizers, and runs them.

The address build runs everything under AddressSanitizer and UndefinedBehaviorSanitizer, with 500 mutated models (20,000
in the long mode); the thread build runs what uses threads under ThreadSanitizer.
"""

import pytest

from tests.support.cpp_builds import BUILDS, build_product, run
from toolchains.targets import ROOT

FOLDER = ROOT / "ops" / "tests"
TESTS = ["kernels_test", "litert_test"]
TESTS += sorted(
    path.stem
    for folder in (FOLDER, FOLDER / "partition")
    for path in folder.glob("*_test.cc")
    if path.stem != "abi_test"
)
# What each build is for. Counting allocations is no use under a sanitizer, which makes its own, and neither are times.
ONLY: dict[str, set[str]] = {"address-gcc": set(), "thread": {"kernels_test", "threads_test"}}
NOT = {"address": {"allocation_test", "failed_allocation_test", "prepare_time_test"}}
# What shares memory among threads is the same for all shapes.
FILTERS = {("thread", "kernels_test"): "*hread*:*itpack*:*axPool*:*GateImages*"}
CASES = [
    (build, test)
    for build in BUILDS
    for test in TESTS
    if test in ONLY.get(build, TESTS) and test not in NOT.get(build, ())
]


def run_test(build: str, test: str, environment: dict[str, str] | None = None) -> str:
    """Builds one C++ test and runs it."""
    folder = build_product(build, test)
    chosen = f"--gtest_filter={FILTERS.get((build, test), '*')}"
    return run(folder / "ops" / "tests" / test, "--gtest_brief=1", chosen, environment=environment)


@pytest.mark.parametrize(("build", "test"), CASES)
def test_cpp(build: str, test: str) -> None:
    run_test(build, test)


@pytest.mark.long
def test_twenty_thousand_mutated_models() -> None:
    assert "20000 models" in run_test(
        "address", "mutation_test", {"LITEBNN_MUTATIONS": "20000", "LITEBNN_SEED": "1000"}
    )
