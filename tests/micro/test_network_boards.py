"""Exported networks on emulated Cortex-M4, M7, M55 and RV32IMC: equal bits, no heap and little stack."""

from __future__ import annotations

import re
import subprocess
import warnings
from pathlib import Path

import pytest

import litebnn
from litebnn.micro.settings import TARGETS
from tests.micro import networks
from toolchains.bare.network import Run, run_selftest, symbols
from toolchains.targets import ROOT, find_target

GOLDEN = ROOT / "tests" / "golden"
DIGITS = ROOT / "examples" / "label_image" / "digits.tflite"
# Models that fit into the board's memory with their test vectors. Together they have every kind of layer.
MODELS = (
    "approx_swish.lce",
    "conv_pool_bn_conv.lce",
    "grouped.lce",
    "int8_qat.lce",
    "odd_channels.lce",
    "same_zero.lce",
)
MOST_STACK = 2048
# Functions that the code may call: litebnn's own, and those that compilers insert for loops, copies and missing
# arithmetic.
ALLOWED = r"litebnn_\w+|mem(cpy|set|move)|__\w+"

pytestmark = [
    pytest.mark.deep,
    pytest.mark.usefixtures("library"),
    pytest.mark.needs("arm-none-eabi-g++", "qemu-system-arm", "riscv64-unknown-elf-g++", "qemu-system-riscv32"),
]


def run(model: Path | bytes, target: str, kernels: str, folder: Path) -> Run:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        litebnn.export_c(model, folder / "network", target=target, kernels=kernels)
    return run_selftest(find_target(target), folder / "network")


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("target", TARGETS)
def test_golden_models_are_bit_equal(target: str, name: str, tmp_path: Path) -> None:
    found = run(GOLDEN / f"{name}.tflite", target, "fast", tmp_path)
    assert found.stack <= MOST_STACK
    assert all(count > 0 for count in found.steps)


@pytest.mark.parametrize("target", TARGETS)
def test_random_networks_are_equal(target: str, tmp_path: Path) -> None:
    seed = 200 + TARGETS.index(target)
    run(networks.float_network(seed, exact=True), target, "compact", tmp_path)
    run(networks.int8_network(seed), target, "compact", tmp_path)


@pytest.mark.parametrize("target", TARGETS)
def test_nothing_allocates_and_no_library_is_called(target: str, tmp_path: Path) -> None:
    found = run(DIGITS, target, "compact", tmp_path)
    assert found.stack <= MOST_STACK
    row, folder = find_target(target), tmp_path / "network"
    names = symbols(row, folder / f"selftest_{target}.elf")
    assert "model_run" in names
    assert [name for name in names if re.search(r"alloc|sbrk|^free$|printf", name)] == []
    sources = sorted((folder / "src").glob("*.c"))
    flags = [*row.gcc_flags, "-std=c99", "-O2", "-Isrc", "-c", *map(str, sources)]
    subprocess.run([f"{row.triple}-gcc", *flags], cwd=folder, check=True)
    listed = subprocess.run(
        [f"{row.triple}-nm", "-u", *(f"{path.stem}.o" for path in sources)], cwd=folder, check=True, capture_output=True
    )
    wanted = re.findall(r"\bU (\S+)", listed.stdout.decode())
    assert [name for name in wanted if not re.fullmatch(ALLOWED, name)] == []


@pytest.mark.needs("demo")
def test_the_digits_network_reads_digits_on_four_boards(capsys: pytest.CaptureFixture[str]) -> None:
    from examples.micro_digits.__main__ import main

    assert main([]) == 0
    out = capsys.readouterr().out
    [digits] = re.findall(r"^digits +(.*)$", out, re.MULTILINE)
    assert re.findall(r"^classes +(.*)  on (\S+)$", out, re.MULTILINE) == [(digits, name) for name in TARGETS]
    rows = re.findall(r"│ (\S+) +│ +([\d,]+) │ +([\d,]+) │ +([\d,]+) │", out)
    assert [row[0] for row in rows] == [*TARGETS]
    for _, flash, ram, _ in rows:
        assert int(flash.replace(",", "")) <= 48 << 10
        assert int(ram.replace(",", "")) <= 16 << 10
