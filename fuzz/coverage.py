"""What the C++ targets have covered of the op library."""

import json
import subprocess
from pathlib import Path

from toolchains.compilers import find_clang_tool
from toolchains.targets import ROOT, ToolkitError

# ISAs of other CPUs are not compiled here.
MEASURED = (ROOT / "ops" / "tflite", ROOT / "ops" / "kernels")


def cpp_coverage(runs: list[tuple[Path, Path]]) -> str:
    """The share of lines and branches of the ops' sources that runs of programs went through, as one line of text.

    Args:
        runs: programs built with clang's coverage, and the profiles that they wrote.

    Raises:
        ToolkitError: a profile is missing, or llvm's tools are or fail.
    """
    merged = runs[0][1].with_name("merged.profdata")
    _run("llvm-profdata", "merge", "-sparse", "-o", str(merged), *(str(profile) for _, profile in runs))
    programs = [str(program) for program, _ in runs]
    others = [word for program in programs[1:] for word in ("-object", program)]
    summary = _run("llvm-cov", "export", "-summary-only", f"-instr-profile={merged}", programs[0], *others)
    files = json.loads(summary)["data"][0]["files"]
    measured = [file for file in files if any(Path(file["filename"]).is_relative_to(folder) for folder in MEASURED)]

    def share(kind: str) -> str:
        covered, count = (sum(file["summary"][kind][key] for file in measured) for key in ("covered", "count"))
        return f"{100 * covered / max(count, 1):.1f} %"

    return f"ops: {share('lines')} of lines and {share('branches')} of branches covered"


def _run(tool: str, *arguments: str) -> str:
    finished = subprocess.run([find_clang_tool(tool), *arguments], capture_output=True, text=True)
    if finished.returncode:
        raise ToolkitError(f"{tool} failed: {finished.stderr.strip()}")
    return finished.stdout
