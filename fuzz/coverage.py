"""Measures the code that the fuzz targets cover: the op library and label_image for C++ targets, the converter for
Python targets."""

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from toolchains.compilers import find_clang_tool
from toolchains.targets import ROOT, ToolkitError

# The source folders of each part whose coverage is measured. Kernels for CPUs of another architecture are not compiled,
# so they do not count as uncovered.
MEASURED = {
    "ops": (ROOT / "ops" / "tflite", ROOT / "ops" / "kernels"),
    "label_image": (ROOT / "examples" / "label_image",),
}
CONVERTER = tuple(
    ROOT / "converter" / "litebnn" / name for name in ("flatbuffer", "graph", "rules", "analysis", "build")
)


def cpp_coverage(runs: list[tuple[Path, Path]]) -> str:
    """The shares of lines and branches that runs of programs covered, one line of text for each part.

    Args:
        runs: programs built with clang's coverage, and the profiles that they wrote.

    Raises:
        ToolkitError: a profile is missing, or llvm's tools are missing or fail.
    """
    merged = runs[0][1].with_name("merged.profdata")
    _run("llvm-profdata", "merge", "-sparse", "-o", str(merged), *(str(profile) for _, profile in runs))
    programs = [str(program) for program, _ in runs]
    others = [word for program in programs[1:] for word in ("-object", program)]
    summary = _run("llvm-cov", "export", "-summary-only", f"-instr-profile={merged}", programs[0], *others)
    return covered_parts(json.loads(summary)["data"][0]["files"])


def covered_parts(files: list[dict[str, Any]]) -> str:
    """One line of text for each part of the code in MEASURED that has files in llvm-cov's export."""
    parts = []
    for part, folders in MEASURED.items():
        measured = [file for file in files if any(Path(file["filename"]).is_relative_to(folder) for folder in folders)]
        if measured:
            lines, branches = _share(measured, "lines"), _share(measured, "branches")
            parts.append(f"{part}: {lines} of lines and {branches} of branches covered")
    return "\n".join(parts)


def _share(files: list[dict[str, Any]], kind: str) -> str:
    covered, count = (sum(file["summary"][kind][key] for file in files) for key in ("covered", "count"))
    return f"{100 * covered / max(count, 1):.1f} %"


def python_coverage(runs: list[tuple[Path, list[Path]]]) -> str:
    """The share of lines and branches of the converter that inputs cover, as one line.

    Args:
        runs: atheris programs, and folders with inputs for each.

    Raises:
        ToolkitError: coverage.py is missing, or a program fails.
    """
    parts = ",".join(f"{part}/*" for part in CONVERTER)
    with tempfile.TemporaryDirectory() as folder:
        base = [sys.executable, "-m", "coverage"]
        data = str(Path(folder) / "data")
        for program, inputs in runs:
            # The number of runs is one more than the number of inputs, because libFuzzer also runs an empty input.
            count = 1 + sum(len(list(corpus.iterdir())) for corpus in inputs)
            measured = [*base, "run", "--branch", "--append", f"--data-file={data}", f"--include={parts}"]
            flags = [f"-atheris_runs={count}", f"-artifact_prefix={folder}/"]
            _checked([*measured, str(program), *flags, *map(str, inputs)])
        report = Path(folder) / "report.json"
        _checked([*base, "json", f"--data-file={data}", "--omit=*_test.py", "-o", str(report)])
        totals = json.loads(report.read_text(encoding="utf-8"))["totals"]
    lines = 100 * totals["covered_lines"] / totals["num_statements"]
    branches = 100 * totals["covered_branches"] / max(totals["num_branches"], 1)
    return f"reader and rules: {lines:.1f} % of lines and {branches:.1f} % of branches covered"


def _checked(command: list[str]) -> None:
    finished = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if finished.returncode:
        raise ToolkitError(f"coverage cannot be measured: {finished.stdout.strip()[-500:]}")


def _run(tool: str, *arguments: str) -> str:
    finished = subprocess.run([find_clang_tool(tool), *arguments], capture_output=True, text=True)
    if finished.returncode:
        raise ToolkitError(f"{tool} failed: {finished.stderr.strip()}")
    return finished.stdout
