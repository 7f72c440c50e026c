"""Runs the C++ tests on 64-bit RISC-V, under qemu-user. No runtime has a wheel for this CPU, so no model is run."""

import os
import subprocess
from pathlib import Path

import pytest

from tests.needs import need
from tests.ops.test_cpp import TESTS
from tests.support.libraries import check_library
from toolchains.build import build_tests
from toolchains.emulate import emulator
from toolchains.targets import find_target

pytestmark = pytest.mark.deep

TARGET = "riscv64"
# The folder of the C library for the programs, which comes with Debian's cross compiler.
LIBRARIES = Path("/usr/riscv64-linux-gnu")


def test_the_cpp_tests_pass() -> None:
    row = find_target(TARGET)
    need("googletest", f"{row.triple}-g++", row.emulator)
    programs = build_tests(TARGET, "gcc")
    assert {*TESTS} - {program.name for program in programs} == {"failed_allocation_test", "prepare_time_test"}
    check_library(row.folder / row.names.library)
    running = [
        subprocess.Popen(
            [emulator(row), "-cpu", row.emulator_cpu, "-L", LIBRARIES, program, "--gtest_brief=1"],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for program in programs
    ]
    assert os.cpu_count()
    passed = 0
    for program, process in zip(programs, running, strict=True):
        output, _ = process.communicate()
        assert process.returncode == 0, f"{program.name}: {output[-4000:]}"
        passed += output.count("[  PASSED  ]")
    assert passed == len(programs)
