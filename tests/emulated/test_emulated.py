"""Tests the wheel, the golden models and the C++ tests on other CPUs, under qemu-user.

`invoke test --target=rpi5` runs these tests for that target; without --target they run for TARGETS.
"""

import json
import subprocess
from pathlib import Path

import pytest

from tests.needs import need
from tests.runtimes import environments
from toolchains.build import build, build_tests
from toolchains.emulate import Emulation
from toolchains.targets import ROOT, Target, find_target
from toolchains.wheel import build_wheel

pytestmark = pytest.mark.deep

TARGETS = ("rpi4", "rpi3")
GOLDEN = ROOT / "tests" / "golden"
# The requirements for the emulated Python: the newest ai-edge-litert, which has only 64-bit wheels, and the last
# release of tflite-runtime.
RUNTIMES = ("ai-edge-litert; platform_machine == 'aarch64'", "tflite-runtime==2.14.0", "numpy<2")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    targets = metafunc.config.getoption("--target") or TARGETS
    metafunc.parametrize("target", map(find_target, targets), ids=targets, indirect=True, scope="module")


@pytest.fixture(scope="module")
def target(request: pytest.FixtureRequest) -> Target:
    row: Target = request.param
    return row


@pytest.fixture(scope="module")
def emulation(target: Target) -> Emulation:
    need("debian")
    return Emulation(target)


@pytest.fixture(scope="module")
def programs(emulation: Emulation, target: Target) -> list[Path]:
    """The C++ tests that are built for the target."""
    need("googletest", f"{target.triple}-g++")
    return build_tests(target.name, "gcc")


@pytest.fixture(scope="module")
def python(emulation: Emulation, target: Target) -> Emulation:
    """The target's emulated Python with the wheel and the runtimes for the target."""
    emulation.install(build_wheel(target.name), *RUNTIMES, "pytest")
    return emulation


def passed(emulation: Emulation, tests: str = "tests/ops/test_golden.py", **variables: str) -> int:
    """Runs tests, by default the golden models in every runtime, and returns the number that passed."""
    # The tests run without the project's own pytest configuration, which needs packages that the emulated Python lacks.
    options = ["-q", "-c", "/dev/null", f"--rootdir={ROOT}", "-p", "no:cacheprovider"]
    run = emulation.python("-m", "pytest", *options, ROOT / tests, **variables)
    assert run.returncode == 0, run.stdout
    summary = run.stdout.strip().splitlines()[-1]
    return int(summary.split(" passed")[0])


def test_wheel_in_the_targets_python(python: Emulation, target: Target) -> None:
    run = python.python(ROOT / "tests" / "emulated" / "check_wheel.py", GOLDEN)
    assert run.returncode == 0, run.stdout
    report = json.loads(run.stdout.strip().splitlines()[-1])
    assert report["machine"] == target.processor
    assert report["library"] == "lib/liblitebnn.so"
    runtime = "tflite_runtime" if target.processor == "armv7l" else "ai_edge_litert"
    assert report["runtime"] == f"{runtime}.interpreter"
    assert not report["tensorflow"]
    assert max(report["relative_errors"].values()) <= 1e-4


def test_golden_models_with_the_wheels_library(python: Emulation, target: Target) -> None:
    runtimes = 1 if target.processor == "armv7l" else 2
    assert passed(python) == 26 * runtimes


def test_golden_models_with_the_targets_library(python: Emulation, target: Target) -> None:
    runtimes = 1 if target.processor == "armv7l" else 2
    # zig builds the library in the wheel. The C++ tests are built by gcc, which builds the library too.
    need(f"{target.triple}-g++")
    assert passed(python, LITEBNN_LIBRARY=str(build(target.name, "gcc", programs=False))) == 26 * runtimes


def test_nodes_that_are_delayed(python: Emulation, target: Target) -> None:
    variables = {"LITEBNN_RUNTIME": "tflite-runtime", "LITEBNN_CASES": str(environments.write_cases())}
    for test in ("test_values[delayed]", "test_convolutions_run_with_what_waits_for_the_runtimes_own_ops"):
        assert passed(python, f"tests/runtimes/suite.py::{test}", **variables) == 1


def run_compiled_models(emulation: Emulation, cpu: str) -> subprocess.CompletedProcess[str]:
    check = ROOT / "tests" / "emulated" / "check_compiled_model.py"
    return emulation.run([emulation.root / "usr" / "bin" / "python3", check, GOLDEN], cpu=cpu)


def test_golden_models_in_compiled_model(python: Emulation, target: Target) -> None:
    if target.processor != "aarch64":
        pytest.skip("there is no ai-edge-litert for this CPU")
    # This CPU is the oldest of the emulated CPUs on which LiteRT's own accelerator can be loaded.
    run = run_compiled_models(python, "cortex-a76")
    assert run.returncode == 0, run.stdout
    report = json.loads(next(line for line in run.stdout.splitlines() if line.startswith('{"same"')))
    assert (len(report["same"]), report["different"]) == (26, [])


def test_a_cpu_on_which_litert_ends_the_process_is_an_error(python: Emulation, target: Target) -> None:
    if target.processor != "aarch64":
        pytest.skip("there is no ai-edge-litert for this CPU")
    run = run_compiled_models(python, "cortex-a72")
    assert run.returncode == 1
    assert "ImportError: CompiledModel cannot run on this CPU: " in run.stdout
    assert run.stdout.strip().endswith("use litebnn.Interpreter")


def test_cpp_tests(emulation: Emulation, programs: list[Path]) -> None:
    assert programs
    for program in programs:
        run = emulation.run([program, "--gtest_brief=1"], LITEBNN_SECONDS="60")
        assert run.returncode == 0, run.stdout
        assert "[  PASSED  ]" in run.stdout


@pytest.mark.parametrize(
    ("cpu", "isa"),
    [
        ("cortex-a53", "neon64_in_order"),
        ("cortex-a55", "neon64_in_order"),
        ("cortex-a72", "neon64"),
        ("cortex-a76", "neon64_tbl"),
        ("neoverse-n1", "neon64_tbl"),
        ("neoverse-v1", "neon64"),
    ],
)
def test_the_core_decides_on_the_isa(
    emulation: Emulation, target: Target, programs: list[Path], cpu: str, isa: str
) -> None:
    if target.processor != "aarch64":
        pytest.skip("only 64-bit Arm has several ISAs to choose from")
    program = next(program for program in programs if program.name == "kernels_test")
    run = emulation.run([program, "--gtest_filter=FindIsa.TheCpuDecides"], cpu=cpu, EXPECTED_ISA=isa)
    assert run.returncode == 0, run.stdout
    assert "[  PASSED  ] 1 test" in run.stdout
