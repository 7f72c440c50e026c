"""Mutants of the C++ that is the same for every instruction set.

A mutant is one line of one file, changed. It is compiled alone, in a copy of the sources, and linked to the tests of
its file; it is killed where one fails, crashes or hangs.
"""

import random
import re
import shutil
import subprocess
from collections.abc import Iterator

from mutants.mutant import Mutant
from toolchains.compilers import Compiler, find_gcc
from toolchains.targets import BUILD, ROOT, ToolkitError, find_target

WORK = BUILD / "mutants"
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
    "ops/tflite/partition/prepare.cc": {**OPS, "failed_allocation_test": "*"},
    "ops/tflite/partition/repack_budget.cc": {"repack_budget_test": "*", "prepare_time_test": "*Share*", **OPS},
    "ops/tflite/runtime/flexbuffer_map.cc": {"flexbuffer_map_test": "*", **OPS},
    "ops/tflite/runtime/node.cc": OPS,
}
# A test program takes seconds; what takes longer hangs.
SECONDS = 120

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
    """A copy of the sources and a build of their tests, in which one file is changed at a time.

    Raises:
        ToolkitError: there is no compiler, or the sources do not build as they are.
    """

    def __init__(self) -> None:
        self._compiler: Compiler = find_gcc(find_target("host"))
        self._source, self._folder = WORK / "source", WORK / "build"
        shutil.rmtree(self._source, ignore_errors=True)
        for name in ("CMakeLists.txt", "converter/litebnn/__init__.py"):
            (self._source / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, self._source / name)
        shutil.copytree(ROOT / "ops", self._source / "ops")
        options = {"LITEBNN_BUILD_TESTS": "ON", "CMAKE_CXX_FLAGS": "-O1 -w"}
        command = self._compiler.configure(self._folder, "Debug", **options)
        command[command.index("-S") + 1] = str(self._source)
        programs = sorted({name for tests in TESTS.values() for name in tests})
        for step in (command, self._compiler.compile(self._folder, *programs)):
            finished = subprocess.run(step, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            if finished.returncode:
                raise ToolkitError(f"the tests of the mutants do not build: {finished.stdout[-2000:]}")

    def is_killed(self, mutant: Mutant) -> bool | None:
        """Whether a test fails for a mutant; None where it does not compile."""
        path = self._source / mutant.file
        original = path.read_text(encoding="utf-8")
        lines = original.splitlines()
        lines[mutant.line - 1] = mutant.after
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        try:
            return any(self._fails(program, which) for program, which in TESTS[mutant.file].items())
        except ToolkitError:
            return None
        finally:
            path.write_text(original, encoding="utf-8")

    def _fails(self, program: str, which: str) -> bool:
        if subprocess.run(self._compiler.compile(self._folder, program), capture_output=True).returncode:
            raise ToolkitError("it does not compile")
        command = [str(self._folder / "ops" / "tests" / program), f"--gtest_filter={which}", "--gtest_brief=1"]
        try:
            return subprocess.run(command, capture_output=True, timeout=SECONDS).returncode != 0
        except subprocess.TimeoutExpired:
            return True


def survivors(count: int, seed: int) -> tuple[int, list[Mutant]]:
    """Tries a random sample of the mutants that are not known to be equivalent.

    Args:
        count: how many; fewer where there are no more.
        seed: of the sample.

    Returns:
        How many compiled, and those of them that no test killed.
    """
    candidates = [mutant for file in TESTS for mutant in mutants_of(file) if not mutant.is_equivalent]
    random.Random(seed).shuffle(candidates)
    workshop = Workshop()
    tried, alive = 0, []
    for mutant in candidates:
        if tried == count:
            break
        killed = workshop.is_killed(mutant)
        if killed is None:
            continue
        tried += 1
        if not killed:
            alive.append(mutant)
            print(f"survived: {mutant}", flush=True)
    return tried, alive
