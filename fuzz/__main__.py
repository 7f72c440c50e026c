"""Fuzzes code that reads untrusted files: runs the seeds of the corpus, then libFuzzer's mutations of them.

Usage:

    python -m fuzz --seconds=20 --seed=1 options graphs

Targets are files in fuzz/targets: NAME_fuzz.cc for libFuzzer, under AddressSanitizer and UBSan, and NAME_fuzz.py for
atheris. All accept libFuzzer's flags. The inputs that a run discovers are kept in build/fuzz/NAME for the next run.
Unless --seed is given, each run uses a new random seed and prints it. No run changes the committed inputs in
fuzz/corpus/NAME. `python -m fuzz.seeds` and `python -m fuzz.model_seeds` made them, except for a few that a run
discovered.
"""

import argparse
import base64
import os
import random
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from fuzz.coverage import cpp_coverage, python_coverage
from toolchains.build import locked
from toolchains.command_line import exit_code
from toolchains.compilers import find_clang
from toolchains.needs import missing
from toolchains.runtime_library import runtime_folder
from toolchains.targets import BUILD, ROOT, ToolkitError

FOLDER = ROOT / "fuzz"
WORK = BUILD / "fuzz"
# The options of CMake for a build with sanitizers. The compiler's option is -O1, because Clang with -O2 and these
# sanitizers takes minutes for a file of kernels.
SANITIZED = {"CMAKE_CXX_FLAGS": "-O1", "LITEBNN_SANITIZE": "address,undefined,float-cast-overflow"}
# The same for programs that record the code that they run.
COVERING = SANITIZED | {"CMAKE_CXX_FLAGS": "-O1 -fprofile-instr-generate -fcoverage-mapping"}
# The number of seconds that one input may take. An input that needs more time or memory is a finding.
SECONDS_OF_AN_INPUT = 5
MEGABYTES = 2048
# A graph may ask for any amount of memory. An allocation of more memory than this machine has must fail and be
# reported.
_NO_LARGE_BLOCKS = f"max_allocation_size_mb={MEGABYTES // 2}:allocator_may_return_null=1"

_FRAMES = 12
# The size in bytes up to which an input is printed. For a larger input, only its path is printed.
_MOST_BYTES = 20_000

_EXCEPTION = re.compile(r"^ *=== Uncaught Python exception: ===\n(.*\n)(Traceback .*\n(?:[ \t].*\n|\n)*)", re.MULTILINE)
_FRAME = re.compile(r"^ *#\d+ 0x[0-9a-f]+ .*\n", re.MULTILINE)
_OF_LIBRARIES = re.compile(r" in (?:fuzzer::|__sanitizer|__ubsan|__asan|main |_start )|^ *#\d+ 0x\w+ +\(/lib")
_INPUT = re.compile(r"Test unit written to (\S+)")


@dataclass(frozen=True)
class Target:
    """A source file that libFuzzer or atheris calls with bytes."""

    source: Path

    @property
    def name(self) -> str:
        return self.source.stem.removesuffix("_fuzz")

    @property
    def is_cpp(self) -> bool:
        return self.source.suffix == ".cc"

    def program(self, *, covering: bool) -> Path:
        """The executable of a C++ target, from the build whose programs record the code that they run, or not."""
        return folder_of_build(covering=covering) / "fuzz" / self.source.stem

    @property
    def corpus(self) -> Path:
        """The folder of the inputs that runs have discovered."""
        return WORK / self.name / "corpus"

    @property
    def profile(self) -> Path:
        """The path of the coverage profile that a C++ target writes, if it records the code that it runs."""
        return WORK / self.name / "coverage.profraw"


def targets() -> dict[str, Target]:
    """The targets by their names."""
    found = (Target(path) for path in sorted((FOLDER / "targets").glob("*_fuzz.*")) if path.suffix in (".cc", ".py"))
    return {target.name: target for target in found}


def needs_of(target: Target) -> tuple[str, ...]:
    """The names of the tools that building or running the target needs, as in the rows of toolchains/needs.py."""
    if not target.is_cpp:
        return ("atheris",)
    return ("clang", "runtime") if target.name == "images" else ("clang",)


def folder_of_build(*, covering: bool) -> Path:
    """The folder in which CMake builds the C++ targets."""
    return WORK / ("covering" if covering else "cpp")


def build(chosen: list[Target], *, covering: bool = False) -> None:
    """Builds C++ targets with clang. If `covering`, they record the code that they run.

    Raises:
        ToolkitError: there is no clang with libFuzzer, or the build failed.
    """
    compiler = find_clang()
    folder = folder_of_build(covering=covering)
    runtime = runtime_folder("host")
    options = {
        "LITEBNN_BUILD_FUZZERS": "ON",
        **(COVERING if covering else SANITIZED),
        "LITEBNN_TFLITE_DIR": str(runtime) if runtime.is_dir() else "",
    }
    products = [target.source.stem for target in chosen]
    steps = compiler.configure(folder, "Debug", **options), compiler.compile(folder, *products)
    with locked(folder):
        for command in steps:
            finished = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            if finished.returncode:
                raise ToolkitError(f"building the fuzz targets failed: {finished.stdout[-2000:]}")


def run(target: Target, seed: int, corpus: Path, *, seconds: int = 0, inputs: int = 0, covering: bool = False) -> int:
    """Runs a built target; returns the number of inputs that it processed.

    The target processes the committed inputs first. Then it makes and processes inputs for `seconds`, or this number
    of `inputs`; by default it makes none. `corpus` is a folder of further inputs to start from, in which new inputs are
    stored. The same code, an empty corpus and the same `seed` give the same inputs.

    Raises:
        ToolkitError: there is a finding; the message has its kind, place and input.
    """
    findings, seeds = WORK / target.name / "findings", FOLDER / "corpus" / target.name
    for folder in (corpus, findings):
        folder.mkdir(parents=True, exist_ok=True)
    # libFuzzer counts the inputs from which it starts too.
    runs = inputs and inputs + len([*corpus.iterdir(), *seeds.iterdir()])
    program = [str(target.program(covering=covering))] if target.is_cpp else [sys.executable, str(target.source)]
    flags = {
        "seed": seed,
        **({"max_total_time": seconds} if seconds else {"runs": runs}),
        "timeout": SECONDS_OF_AN_INPUT,
        "rss_limit_mb": MEGABYTES,
        "artifact_prefix": f"{findings}/",
        "print_final_stats": 1,
    }
    command = [*program, *(f"-{name}={value}" for name, value in flags.items()), str(corpus)]
    # libFuzzer's memory limit also counts memory that is inherited from the parent process. Therefore a small shell
    # starts the target.
    finished = subprocess.run(
        ["sh", "-c", '"$@"; exit $?', "sh", *command, str(seeds)],
        cwd=ROOT,
        # A constant hash seed makes the order of Python's sets of strings the same in each run.
        env=os.environ
        | {"LLVM_PROFILE_FILE": str(target.profile), "ASAN_OPTIONS": _NO_LARGE_BLOCKS, "PYTHONHASHSEED": "0"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    )
    if finished.returncode:
        raise ToolkitError(f"{target.name}: {describe(finished.stdout)}")
    executions = re.search(r"number_of_executed_units: *(\d+)", finished.stdout)
    return int(executions[1]) if executions else 0


def describe(output: str) -> str:
    """The description of a finding: its kind, the innermost frames of its stack, and the input, in base64 if it is
    small."""
    exception = _EXCEPTION.search(output)
    if exception:
        kind, frames = exception[1].strip(), exception[2].splitlines()[1:]
        # In a traceback, Python prints the innermost call last, and each call takes two lines.
        stack = frames[-2 * _FRAMES :]
    else:
        reports = re.findall(r"^.*(?:runtime error:|ERROR:|SUMMARY:).*$", output, re.MULTILINE)
        kind = "; ".join(dict.fromkeys(line.strip() for line in reports)) or output[-1000:]
        stack = [line.rstrip() for line in _FRAME.findall(output) if not _OF_LIBRARIES.search(line)][:_FRAMES]
    return "\n".join([kind, *stack, *_input(output)])


def _input(output: str) -> list[str]:
    written = _INPUT.search(output)
    if written is None:
        return []
    path = Path(written[1])
    small = path.is_file() and path.stat().st_size <= _MOST_BYTES
    return [f"input: {path}", *([f"in base64: {base64.b64encode(path.read_bytes()).decode()}"] if small else [])]


def fuzz(names: list[str], seconds: int, seed: int) -> None:
    """Builds and runs targets, by default all that this machine can run, and prints their coverage.

    Raises:
        ToolkitError: no target has this name, a named target cannot run on this machine, or there is a finding.
    """
    known = targets()
    for name in names:
        if name not in known:
            raise ToolkitError(f"there is no fuzz target {name}: expected some of {', '.join(known)}")
    chosen = [known[name] for name in names or known]
    lacking = {target.name: next(filter(None, map(missing, needs_of(target))), "") for target in chosen}
    for name, reason in lacking.items():
        if reason and names:
            raise ToolkitError(f"{name}: {reason}")
        if reason:
            print(f"{name}: skipped, {reason}", flush=True)
    able = [target for target in chosen if not lacking[target.name]]
    in_cpp = [target for target in able if target.is_cpp]
    if in_cpp:
        build(in_cpp, covering=True)
    print(f"seed {seed}", flush=True)
    for target in able:
        inputs = run(target, seed, target.corpus, seconds=seconds, covering=True)
        print(f"{target.name}: {inputs:,} inputs in {seconds} s, nothing found", flush=True)
    if in_cpp:
        print(cpp_coverage([(target.program(covering=True), target.profile) for target in in_cpp]), flush=True)
    in_process = [target for target in able if not target.is_cpp and target.name != "verify"]
    if in_process:
        corpora = [[target.corpus, FOLDER / "corpus" / target.name] for target in in_process]
        print(python_coverage([(t.source, c) for t, c in zip(in_process, corpora, strict=True)]), flush=True)


def main(arguments: list[str] | None = None) -> int:
    """Runs the command line and returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m fuzz", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seconds", type=int, default=20, help="number of seconds for which each target runs")
    parser.add_argument(
        "--seed", type=int, default=random.randrange(1, 2**31), help="seed; by default another one in each run"
    )
    parser.add_argument("targets", nargs="*", help=", ".join(targets()))
    options = parser.parse_args(arguments)
    return exit_code(lambda: fuzz(options.targets, options.seconds, options.seed))


if __name__ == "__main__":
    sys.exit(main())
