"""Mutants of the C++ that is the same for every instruction set.

A mutant is one line of one file, changed. It is compiled alone and linked to the tests of its file, before the library
that has the original; it is killed where a test fails, crashes or hangs.
"""

import functools
import json
import random
import re
import resource
import shlex
import subprocess
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from mutants import mutant as sample
from mutants.mutant import Mutant, Verdict
from toolchains.compilers import find_gcc
from toolchains.targets import BUILD, ROOT, ToolkitError, find_target

WORK = BUILD / "mutants" / "cpp"
TEST_FILES = WORK / "ops" / "tests" / "CMakeFiles"
# The programs that test a file, those first that kill most, with what of them to run.
KERNELS = {"kernels_test": "*portable*:PackedFilter*:Frame*:Schedule*:PaddingCorrections*:InsideTaps*:ThreadPool*"}
OPS = {"ops_test": "*", "partition_test": "*", "mutation_test": "*"}
TESTS: dict[str, dict[str, str]] = {
    "ops/kernels/bconv2d/bconv2d.cc": KERNELS,
    "ops/kernels/bconv2d/frame.cc": KERNELS,
    "ops/kernels/bconv2d/packed_filter.cc": KERNELS,
    "ops/kernels/bconv2d/padding_corrections.cc": KERNELS,
    "ops/kernels/bconv2d/schedule.cc": KERNELS,
    "ops/kernels/bitpack.cc": KERNELS,
    "ops/kernels/max_pool.cc": KERNELS,
    "ops/tflite/ops/broadcast_sum.cc": {"broadcast_sum_test": "*", "partition_test": "*", **OPS},
    "ops/tflite/ops/max_pool2d.cc": OPS,
    "ops/tflite/ops/window.cc": OPS,
    "ops/tflite/partition/arena.cc": {
        "arena_test": "*",
        "plan_memory_test": "*",
        "prepare_time_test": "*Arena*",
        **OPS,
    },
    "ops/tflite/partition/claim.cc": {"claim_test": "*", "entry_test": "*", **OPS},
    "ops/tflite/partition/fuse.cc": {"fuse_test": "*", **OPS},
    "ops/tflite/partition/plan_memory.cc": {"plan_memory_test": "*", **OPS},
    "ops/tflite/partition/prepare.cc": OPS,
    "ops/tflite/partition/repack_budget.cc": {"repack_budget_test": "*", "prepare_time_test": "*Share*", **OPS},
    "ops/tflite/runtime/flexbuffer_map.cc": {"flexbuffer_map_test": "*", **OPS},
    "ops/tflite/runtime/node.cc": OPS,
}
# A test program takes seconds of processor time; what takes more hangs, as does what waits for minutes.
SECONDS, PATIENCE = 15, 600

# What is changed into what. Operators stand between spaces, which template brackets do not.
CHANGES = [
    (re.compile(r" < "), " <= "),
    (re.compile(r" <= "), " < "),
    (re.compile(r" > "), " >= "),
    (re.compile(r" >= "), " > "),
    (re.compile(r" == "), " != "),
    (re.compile(r" != "), " == "),
    (re.compile(r" && "), " || "),
    (re.compile(r" \|\| "), " && "),
    (re.compile(r" \+ "), " - "),
    (re.compile(r" - "), " + "),
    (re.compile(r" \* (?!const)"), " / "),
    (re.compile(r" / "), " * "),
    (re.compile(r" % "), " / "),
    (re.compile(r" \+= "), " -= "),
    (re.compile(r"(?<![\w.\"'])(?:0|1|2)(?![\w.'])"), "3"),
    (re.compile(r"\btrue\b"), "false"),
    (re.compile(r"\bfalse\b"), "true"),
    (re.compile(r"\bstd::min\b"), "std::max"),
    (re.compile(r"\bstd::max\b"), "std::min"),
    # A statement of one line is left out.
    (re.compile(r"^( +)(?!return|const|auto|int|size_t|using|break|continue)[\w>\-.*(\[][^;]*;$"), r"\1;"),
]
# Neither what is not code, nor declarations, nor messages.
SKIPPED = re.compile(r"^\s*(//|#|constexpr|static_assert|template|using|struct|class|namespace|\"|case)|Error\(|//")


def mutants_of(file: str) -> Iterator[Mutant]:
    """All mutants of a file of the project."""
    for number, line in enumerate((ROOT / file).read_text(encoding="utf-8").splitlines(), start=1):
        if SKIPPED.search(line):
            continue
        for pattern, replacement in CHANGES:
            for found in pattern.finditer(line):
                after = line[: found.start()] + found.expand(replacement) + line[found.end() :]
                if after != line:
                    yield Mutant(file, number, line, after)


class Workshop:
    """A build of the tests, which are linked anew to one changed file at a time.

    Raises:
        ToolkitError: there is no compiler, or the tests do not build as they are.
    """

    def __init__(self) -> None:
        compiler = find_gcc(find_target("host"))
        # A configuration of no name of CMake's has no flags but these.
        options = {
            "LITEBNN_BUILD_TESTS": "ON",
            "CMAKE_CXX_FLAGS": "-O1 -w",
            "CMAKE_EXPORT_COMPILE_COMMANDS": "ON",
        }
        programs = sorted({name for tests in TESTS.values() for name in tests})
        for step in (compiler.configure(WORK, "Mutants", **options), compiler.compile(WORK, *programs)):
            finished = subprocess.run(step, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            if finished.returncode:
                raise ToolkitError(f"the tests of the mutants do not build: {finished.stdout[-2000:]}")
        commands = json.loads((WORK / "compile_commands.json").read_text(encoding="utf-8"))
        self._commands = {command["file"]: shlex.split(command["command"]) for command in commands}

    def trial(self, mutant: Mutant) -> Verdict | None:
        """Whether a test fails for a mutant; None where it does not compile."""
        lines = (ROOT / mutant.file).read_text(encoding="utf-8").splitlines()
        lines[mutant.line - 1] = mutant.after
        with tempfile.TemporaryDirectory(dir=WORK) as name:
            changed, compiled = Path(name, "mutant.cc"), Path(name, "mutant.o")
            changed.write_text("\n".join(lines) + "\n", encoding="utf-8")
            command = self._commands[str(ROOT / mutant.file)]
            options = command[: command.index("-o")]
            if subprocess.run([*options, "-o", compiled, "-c", changed], capture_output=True, cwd=WORK).returncode:
                return None
            return mutant, any(self._fails(compiled, *tests) for tests in TESTS[mutant.file].items())

    def _fails(self, compiled: Path, program: str, which: str) -> bool:
        linked = compiled.with_name(program)
        objects = sorted(str(path) for path in (TEST_FILES / f"{program}.dir").rglob("*.o"))
        libraries = ["-Wl,--start-group", *sorted(str(path) for path in WORK.rglob("*.a")), "-Wl,--end-group", "-ldl"]
        # Of the libraries only that is taken which is missing still: not what is changed.
        link = [self._compiler, *objects, str(compiled), *libraries, "-pthread", "-o", str(linked)]
        subprocess.run(link, check=True, capture_output=True)
        command = [str(linked), f"--gtest_filter={which}", "--gtest_brief=1", "--gtest_fail_fast"]
        limit = functools.partial(resource.setrlimit, resource.RLIMIT_CPU, (SECONDS, SECONDS))
        try:
            return subprocess.run(command, capture_output=True, timeout=PATIENCE, preexec_fn=limit).returncode != 0
        except subprocess.TimeoutExpired:
            return True

    @property
    def _compiler(self) -> str:
        return next(iter(self._commands.values()))[0]


def survivors(count: int, seed: int, jobs: int) -> tuple[int, list[Mutant]]:
    """Tries a random sample of the mutants that are not known to be equivalent.

    Args:
        count: how many; fewer where there are no more.
        seed: of the sample.
        jobs: how many to try at once.

    Returns:
        How many compiled, and those of them that no test killed.
    """
    candidates = [mutant for file in TESTS for mutant in mutants_of(file) if not mutant.is_equivalent]
    random.Random(seed).shuffle(candidates)
    workshop = Workshop()
    with ThreadPoolExecutor(jobs) as executor:
        return sample.survivors(iter(candidates), count, executor, workshop.trial)
