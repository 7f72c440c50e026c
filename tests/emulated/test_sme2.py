"""Tests the kernels for SME2, on emulated CPUs with every vector length.

By default each vector length runs a part of the tests that all other ISAs have to pass; --long runs all of them.
"""

import subprocess
from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile

from tests.emulated.test_emulated import TARGETS
from tests.needs import need
from toolchains.build import build_tests
from toolchains.compilers import ziglang_program
from toolchains.emulate import recent_emulator
from toolchains.targets import ROOT, Target, find_target

pytestmark = pytest.mark.deep

VECTOR_BITS = (128, 256, 512, 1024, 2048)
# The tests that are left out by default. They take two thirds of the time, and would not find more errors that depend
# on the vector length.
LONG = ("EqualOr", "EveryChannelCount", "Deep", "ManyChannelsOut", "WideImages", "TallFilters")
ASSEMBLY = ROOT / "ops" / "kernels" / "isa" / "sme2" / "bconv.S"


@pytest.fixture(scope="module")
def target(request: pytest.FixtureRequest) -> Target:
    rows = map(find_target, request.config.getoption("--target") or TARGETS)
    arm64 = next((row for row in rows if row.processor == "aarch64"), None)
    if arm64 is None:
        pytest.skip("only 64-bit Arm has SME2")
    return arm64


def run_kernels(target: Target, vector_bits: int, chosen: str) -> str:
    """Runs some of the kernels' tests on an emulated CPU with this vector length; returns their output."""
    need("debian", "googletest", f"{target.triple}-g++")
    emulator = recent_emulator(target)
    program = next(program for program in build_tests(target.name, "gcc") if program.name == "kernels_test")
    # Features that SME2 CPUs may lack are disabled: SVE, and the full NEON and SVE in streaming mode.
    cpu = f"max,sve=off,sme_fa64=off,sme{vector_bits}=on,sme-default-vector-length={vector_bits // 8}"
    command = [emulator, "-cpu", cpu, "-L", f"/usr/{target.triple}", program, f"--gtest_filter={chosen}"]
    run = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert run.returncode == 0, run.stdout[-8000:]
    return run.stdout


@pytest.mark.parametrize("vector_bits", VECTOR_BITS)
def test_outputs_are_those_of_the_reference(target: Target, vector_bits: int) -> None:
    left_out = ":".join(f"*{name}*" for name in LONG)
    printed = run_kernels(target, vector_bits, f"*Bconv2d*/sme2:Sme2.*-{left_out}")
    assert f"vectors of {vector_bits} bits" in printed
    assert "RandomShapes/sme2" in printed
    assert "SKIPPED" not in printed


@pytest.mark.long
@pytest.mark.parametrize("vector_bits", VECTOR_BITS)
def test_outputs_are_those_of_the_reference_in_the_whole_sweep(target: Target, vector_bits: int) -> None:
    assert "EqualOrOppositeBits/sme2" in run_kernels(target, vector_bits, "*/sme2")


def test_the_cpu_decides_for_sme2(target: Target, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EXPECTED_ISA", "sme2")
    assert "[  PASSED  ] 1 test" in run_kernels(target, 512, "FindIsa.TheCpuDecides")


def test_words_are_those_that_an_assembler_makes_of_the_instructions(tmp_path: Path) -> None:
    need("cross")
    zig = ziglang_program()
    command = [zig, "cc", "-target", "aarch64-linux-gnu", "-mcpu=generic", f"-I{ROOT / 'ops'}", "-c", ASSEMBLY]
    made = {}
    for name, options in {"words": [], "mnemonics": ["-DLITEBNN_SME2_MNEMONICS"]}.items():
        path = tmp_path / f"{name}.o"
        subprocess.run([*command, *options, "-o", path], check=True)
        with path.open("rb") as file:
            made[name] = ELFFile(file).get_section_by_name(".text").data()
    assert len(made["words"]) > 1000
    assert made["words"] == made["mnemonics"]
