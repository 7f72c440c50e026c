"""Runs the golden models in benchmark_model under valgrind, which must find no uninitialized reads and no access out of
bounds."""

import os
import platform
import subprocess
from pathlib import Path

import pytest

from tests.support.programs import GOLDEN, WITH_SIGN, host_programs

# The ISA to test on each CPU, because valgrind does not support AVX-512.
ISA = {"x86_64": "avx2"}
pytestmark = [pytest.mark.long, pytest.mark.needs("valgrind")]


@pytest.mark.parametrize("model", [path for path in GOLDEN if path != WITH_SIGN], ids=lambda path: path.name)
def test_golden_models(model: Path) -> None:
    program = host_programs() / "benchmark_model"
    flags = [f"--graph={model}", "--lcompute=1", "--use_xnnpack=0", "--num_runs=1", "--warmup_runs=0"]
    checks = ["valgrind", "--quiet", "--error-exitcode=9", "--leak-check=full", "--errors-for-leak-kinds=none"]
    isa = {"LITEBNN_ISA": ISA[platform.machine()]} if platform.machine() in ISA else {}
    run = subprocess.run([*checks, program, *flags], env=os.environ | isa, capture_output=True, text=True)
    ours = [block for block in run.stderr.split("\n==") if "liblitebnn.so" in block or "litebnn::" in block]
    assert ours == []
    assert run.returncode in (0, 9), run.stderr
