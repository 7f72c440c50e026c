"""Tests the kernels on emulated boards: outputs are equal bit for bit, and instructions stay within the promised
numbers."""

import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from bench.micro.cases import count, instructions, kernels_of, random_case
from bench.micro.source import program_source
from litebnn.micro import choice
from litebnn.micro.fixed_output import fixed_output
from tests.micro.layers import RANDOM_LAYERS, case_of
from tests.needs import need
from toolchains.bare_metal import compile_program, run_program
from toolchains.build import build
from toolchains.targets import Target, ToolkitError, find_target, load_targets

pytestmark = pytest.mark.deep
BOARDS = [row.name for row in load_targets().values() if row.is_bare_metal]


@pytest.fixture(params=BOARDS)
def board(request: pytest.FixtureRequest) -> Target:
    return board_called(request.param)


def board_called(name: str) -> Target:
    """The target with this name, which has a board. Skips the test if its compiler or emulator is missing."""
    target = find_target(name)
    need(f"{target.triple}-g++", target.emulator)
    return target


def test_outputs_are_bit_equal(board: Target, tmp_path: Path) -> None:
    cases = [case_of(conv, kernel) for conv in RANDOM_LAYERS for kernel in kernels_of(board)]
    for case in [case for case in cases if case.expected.dtype == np.int8]:
        fixed = fixed_output(case.geometry, case.multiplier, case.bias, case.clamp, case.zero_point)
        cases += [] if fixed is None else [replace(case, fixed=fixed, multiplier=None, bias=None)]
    assert sum(case.fixed is not None for case in cases) > 10
    source = tmp_path / "cases.c"
    source.write_text(program_source(cases))
    for flags in (["-O2"], ["-Os"]):
        lines = run_program(board, compile_program(board, [source], tmp_path / "cases.elf", flags)).splitlines()
        assert [line.split()[::2] for line in lines] == [[case.name, "0"] for case in cases]


def test_a_wrong_output_fails(tmp_path: Path) -> None:
    target = board_called("cortex-m4")
    case = random_case("pairs", 32, "bits")
    case.expected[0, 0, 0] ^= 1
    with pytest.raises(ToolkitError, match="failed with code 1"):
        count(target, [case])


# The limits on instructions for 32 products, by the number of channels, for 3x3 layers from packed input to packed
# output.
@pytest.mark.parametrize(
    ("name", "kernel", "flags", "limits"),
    [
        ("cortex-m4", "pairs", "-O2", {64: 8.5, 256: 8.2}),
        ("cortex-m4", "pairs", "-Os", {64: 8.6, 256: 8.2}),
        ("cortex-m4", "triples", "-O2", {64: 8.0, 128: 7.0, 256: 6.6}),
        ("cortex-m55", "helium", "-O2", {128: 2.8}),
        ("rv32imc", "pairs_of_masks", "-O2", {64: 9.3, 256: 9.3}),
    ],
)
def test_instructions(name: str, kernel: str, flags: str, limits: dict[int, float]) -> None:
    target = board_called(name)
    counts = {channels: count(target, [random_case(kernel, channels, "bits")], (flags,))[0] for channels in limits}
    assert {channels: found for channels, found in counts.items() if found > limits[channels]} == {}


@pytest.mark.parametrize("output", ["bits", "fixed"])
def test_estimates_are_near(board: Target, output: str) -> None:
    """The converter selects kernels by estimated costs. For a layer to which the costs were not fitted, the estimate
    must be near the measured cost.
    """
    cases = [random_case(kernel, 96, output, 3, 96) for kernel in kernels_of(board)]
    found = instructions(board, cases)
    estimates = [choice.instructions(case.geometry, board.name, case.name, output) for case in cases]
    assert estimates == pytest.approx(found, rel=0.1)


def test_the_library_needs_nothing_but_memcpy(board: Target) -> None:
    """The library calls only memcpy from the C library, and the compiler's own functions for arithmetic."""
    library = build(board.name)
    symbols = subprocess.run([f"{board.triple}-nm", str(library)], capture_output=True, text=True, check=True).stdout
    rows = [line.split() for line in symbols.splitlines()]
    defined = {row[2] for row in rows if len(row) == 3}
    undefined = {row[1] for row in rows if len(row) == 2 and row[0] == "U"} - defined
    assert {name for name in undefined if not name.startswith(ARITHMETIC)} <= {"memcpy"}
    assert {row[1] for row in rows if len(row) == 3} <= set("TtRr")


ARITHMETIC = ("__aeabi_", "__mulsf3", "__addsf3", "__float", "__fix", "__ltsf2", "__gtsf2", "__divsi3", "__muldi3")
