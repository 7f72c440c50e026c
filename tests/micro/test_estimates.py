"""Tests the estimates of flash, RAM, instructions and cycles of exported networks, and the commands that print them."""

import html
import json
import re
from pathlib import Path

import pytest

import litebnn
from litebnn.cli import main
from litebnn.micro import TARGETS
from litebnn.micro.estimate import CYCLES, builtin_costs
from litebnn.micro.export import estimate_c
from litebnn.micro.folder import sources_folder
from toolchains.bare.network import run_selftest
from toolchains.targets import ROOT, find_target

DIGITS = ROOT / "examples" / "label_image" / "digits.tflite"
pytestmark = pytest.mark.usefixtures("library")


def test_every_target_has_costs_and_cycles() -> None:
    assert set(builtin_costs()) == set(CYCLES) == set(TARGETS)
    for costs in builtin_costs().values():
        assert {"litebnn_conv2d_float_rows", "litebnn_conv2d_int8_rows", "litebnn_quantize_float"} <= set(costs)


def test_every_function_has_costs() -> None:
    headers = (sources_folder() / name for name in ("builtin/litebnn_builtin.h", "litebnn_micro.h"))
    declared = re.findall(r"void (litebnn_\w+)\(", "".join(header.read_text() for header in headers))
    functions = {name for name in declared if "bconv2d" not in name}
    assert len(functions) > 50
    assert {target: functions - set(costs) for target, costs in builtin_costs().items() if functions - set(costs)} == {}


def test_fast_kernels_take_more_flash_and_fewer_instructions() -> None:
    compact, fast = (estimate_c(DIGITS, kernels=kernels) for kernels in ("compact", "fast"))
    assert fast.constant_bytes > compact.constant_bytes
    assert fast.instructions < compact.instructions
    assert compact.cycles == pytest.approx(1.1 * compact.instructions, rel=1e-3)


def test_inspect_and_summary_print_the_estimate(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["inspect", str(DIGITS), "--microcontroller=cortex-m7"]) == 0
    out = capsys.readouterr().out
    assert "As C on cortex-m7 with compact kernels" in out
    assert "arena 6,032 bytes" in out
    assert main(["summary", str(DIGITS), "--microcontroller=rv32imc", "--kernels=fast", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["microcontroller"]
    assert (found["target"], found["kernels"]) == ("rv32imc", "fast")
    assert all(step["instructions"] > 0 and step["cycles"] > 0 for step in found["steps"])
    assert main(["inspect", str(DIGITS), "--kernels=fast"]) == 1
    assert "--kernels is for --microcontroller" in capsys.readouterr().err


@pytest.mark.needs("report")
def test_the_reports_page_has_the_table(tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    assert main(["inspect", str(DIGITS), "--microcontroller=cortex-m7", "--report", str(page)]) == 0
    [table] = re.findall(r'<table class="steps">(.*?)</table>', page.read_text(encoding="utf-8"), re.S)
    lines = re.findall(r"<tr>(.*?)</tr>", table, re.S)
    header, *rows = [
        [html.unescape(re.sub("<.*?>", "", cell)) for cell in re.split("</t[hd]>", line)] for line in lines
    ]
    export = estimate_c(DIGITS, target="cortex-m7")
    layers, cycles = header.index("layer"), header.index("cycles")
    assert [row[layers] for row in rows] == [step.layer for step in export.steps]
    assert [row[cycles] for row in rows] == [f"{step.cycles:,}" for step in export.steps]
    assert main(["inspect", str(DIGITS), "--report", str(page)]) == 0
    assert '<table class="steps">' not in page.read_text(encoding="utf-8")


@pytest.mark.deep
@pytest.mark.needs("arm-none-eabi-g++", "qemu-system-arm", "riscv64-unknown-elf-g++", "qemu-system-riscv32")
@pytest.mark.parametrize("target", TARGETS)
def test_estimates_are_near_what_qemu_counts(target: str, tmp_path: Path) -> None:
    export = litebnn.export_c(DIGITS, tmp_path / "network", target=target)
    run = run_selftest(find_target(target), tmp_path / "network")
    assert export.instructions == pytest.approx(sum(run.steps), rel=0.3)
