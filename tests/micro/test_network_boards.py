"""Tests exported networks on emulated Cortex-M4, M7, M55 and RV32IMC: equal bits, no heap and little stack."""

import re
import subprocess
import warnings
from pathlib import Path

import pytest

import litebnn
from litebnn.micro import KERNELS, TARGETS
from tests.micro import networks
from toolchains.bare.network import Run, run_selftest, run_selftests, symbols
from toolchains.targets import ROOT, ToolkitError, find_target

GOLDEN = ROOT / "tests" / "golden"
DIGITS = ROOT / "examples" / "label_image" / "digits.tflite"
# The models that fit into the board's memory together with their test vectors. Together they have every kind of layer.
MODELS = (
    "approx_swish.lce",
    "conv_pool_bn_conv.lce",
    "grouped.lce",
    "int8_qat.lce",
    "odd_channels.lce",
    "same_zero.lce",
)
MOST_STACK = 2048
# The number of random networks in one program for a board, and the number of programs. With --deep the first program
# runs, and with --long all programs run.
IN_BATCH, BATCHES = 25, 8
# The functions that the code may call: litebnn's own, and those that compilers insert for loops, copies and missing
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


def export_random(seed: int, target: str, folder: Path) -> Path:
    """Exports a random network whose results are exact, with the compact or the fast kernels."""
    model = networks.int8_network(seed) if seed % 2 else networks.float_network(seed, exact=True)
    kernels = KERNELS[seed // 2 % 2]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert litebnn.export_c(model, folder / f"n{seed}", name=f"n{seed}", target=target, kernels=kernels).exact
    return folder / f"n{seed}"


@pytest.mark.parametrize("batch", [0, *(pytest.param(n, marks=pytest.mark.long) for n in range(1, BATCHES))])
@pytest.mark.parametrize("target", TARGETS)
def test_random_networks_are_bit_equal(target: str, batch: int, tmp_path: Path) -> None:
    seeds = range(batch * IN_BATCH, (batch + 1) * IN_BATCH)
    folders = [export_random(seed, target, tmp_path) for seed in seeds]
    run_selftests(find_target(target), folders, tmp_path / "networks.elf")


def test_a_wrong_result_among_several_networks_is_seen(tmp_path: Path) -> None:
    folders = [export_random(seed, "cortex-m4", tmp_path) for seed in (0, 1, 2)]
    vectors = folders[1] / "n1_vectors.h"
    text = vectors.read_text()
    start = text.index("{", text.index("n1_vectors_output"))
    vectors.write_text(text[:start] + re.sub(r"-?\d+", lambda level: str(-1 - int(level[0])), text[start:], count=1))
    with pytest.raises(ToolkitError, match=r"(?s)passed.*FAILED.*passed"):
        run_selftests(find_target("cortex-m4"), folders, tmp_path / "networks.elf")


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


@pytest.mark.parametrize("network", [pytest.param("digits", marks=pytest.mark.needs("demo")), "gestures"])
def test_the_examples_networks_recognise_their_samples_on_four_boards(
    network: str, capsys: pytest.CaptureFixture[str]
) -> None:
    from examples.micro.__main__ import main

    assert main([f"--network={network}"]) == 0
    out = capsys.readouterr().out
    [labels] = re.findall(r"^labels +(.*)$", out, re.MULTILINE)
    assert re.findall(r"^classes +(.*)  on (\S+)$", out, re.MULTILINE) == [(labels, name) for name in TARGETS]
    rows = re.findall(r"│ (\S+) +│ +([\d,]+) │ +([\d,]+) │ +([\d,]+) │", out)
    assert [row[0] for row in rows] == [*TARGETS]
    for _, flash, ram, _ in rows:
        assert int(flash.replace(",", "")) <= 48 << 10
        assert int(ram.replace(",", "")) <= 16 << 10
