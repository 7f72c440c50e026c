"""Tries mutants of the C++ code that all instruction sets share: the computation and its memory.

A mutant is one changed line of one file. The changed file is compiled alone, and linked with the tests of this file.
The changed file replaces the original file of the library. Mutants that survive these tests are linked into a shared
library, for the test of exhausted memory and for the comparisons with NumPy. A mutant is killed if a test fails,
crashes or hangs.
"""

import json
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from mutants import mutant as sample
from mutants.mutant import Mutant, Outcome, Verdict, outcome_of
from toolchains.compilers import find_gcc
from toolchains.targets import BUILD, ROOT, ToolkitError, find_target

WORK = BUILD / "mutants" / "cpp"
TEST_FILES = WORK / "ops" / "tests" / "CMakeFiles"
SUPPORT_FILES = WORK / "ops" / "tests" / "support" / "CMakeFiles"
# The test programs, which are linked into one program. The fastest come first.
OP_TESTS = ["partition_test", "ops_test", "prepare_time_test", "mutation_test"]
KERNEL_TESTS = ["kernels_test"]
# The C++ test that runs the shared library as it is shipped.
LIBRARY_TEST = "failed_allocation_test"
NUMPY_TESTS = ["pytest", "-x", "-q", "-p", "no:cacheprovider", "--hypothesis-seed=0", "tests/ops/test_properties.py"]
# Only the portable ISA's tests run, because the mutated code is common to all ISAs.
FILTER = "--gtest_filter=-*/avx*:*/neon*:*/sme*"
KERNELS = "ops/kernels"
# The folders with the code that is mutated, without their subfolders. The folders of single ISAs are left out, and so
# is kernels/platform, whose code depends on the system.
FOLDERS = (KERNELS, f"{KERNELS}/bconv2d", "ops/tflite/ops", "ops/tflite/partition", "ops/tflite/runtime")
FILES = sorted(str(path.relative_to(ROOT)) for folder in FOLDERS for path in (ROOT / folder).glob("*.cc"))
SECONDS = 30  # of processor time that a test program may take

# The changes that make mutants: regular expressions and their replacements. The spaces around an operator distinguish
# it from a template's angle bracket.
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
    # This pattern makes mutants that lack a statement of one line.
    (re.compile(r"^( +)(?!return|const|auto|int|size_t|using|break|continue)[\w>\-.*(\[][^;]*;$"), r"\1;"),
]
# The lines that are not mutated: comments, preprocessor lines, declarations, messages, and cost estimates, which only
# decide the number of threads.
SKIPPED = re.compile(
    r"^\s*(//|#|constexpr|static_assert|template|using|struct|class|namespace|\"|case)|Error\(|//|[cC]ycles"
)


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
    """A build of the tests, which is linked again for each mutant with one changed file.

    Raises:
        ToolkitError: there is no compiler, or the tests of the unchanged code do not build.
    """

    def __init__(self) -> None:
        compiler = find_gcc(find_target("host"))
        # CMake adds no compiler flags of its own if the configuration has a name that CMake does not know.
        options = {
            "LITEBNN_BUILD_TESTS": "ON",
            # Each mutant is one changed file, so each file is compiled by a command of its own.
            "LITEBNN_UNITY_BUILD": "OFF",
            "CMAKE_CXX_FLAGS": "-O1 -w",
            "CMAKE_EXPORT_COMPILE_COMMANDS": "ON",
        }
        programs = (*KERNEL_TESTS, *OP_TESTS, LIBRARY_TEST)
        for step in (compiler.configure(WORK, "Mutants", **options), compiler.compile(WORK, *programs)):
            finished = subprocess.run(step, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            if finished.returncode:
                raise ToolkitError(f"the tests of the mutants do not build: {finished.stdout[-2000:]}")
        commands = json.loads((WORK / "compile_commands.json").read_text(encoding="utf-8"))
        self._commands = {command["file"]: shlex.split(command["command"]) for command in commands}
        if self._outcome_of_library(WORK) is not Outcome.SURVIVED:
            raise ToolkitError(f"the tests of the library fail without a mutant: {LIBRARY_TEST}, {NUMPY_TESTS[-1]}")

    def trial(self, mutant: Mutant) -> Verdict | None:
        """The result of a mutant's tests; None if it does not compile."""
        lines = (ROOT / mutant.file).read_text(encoding="utf-8").splitlines()
        lines[mutant.line - 1] = mutant.after
        with tempfile.TemporaryDirectory(dir=WORK) as name:
            changed, compiled = Path(name, "mutant.cc"), Path(name, "mutant.o")
            changed.write_text("\n".join(lines) + "\n", encoding="utf-8")
            command = self._commands[str(ROOT / mutant.file)]
            options = command[: command.index("-o")]
            if subprocess.run([*options, "-o", compiled, "-c", changed], capture_output=True, cwd=WORK).returncode:
                return None
            linked = Path(name, "test")
            self._link_tests(compiled, KERNEL_TESTS if mutant.file.startswith(KERNELS) else OP_TESTS, linked)
            outcome = self._outcome_of_program(linked)
            if outcome is Outcome.SURVIVED:
                self._link_library(mutant, compiled, Path(name, "liblitebnn.so"))
                outcome = self._outcome_of_library(Path(name))
            return mutant, outcome

    def _link_tests(self, compiled: Path, programs: Sequence[str], linked: Path) -> None:
        """Links the tests of several test programs and the mutant's object file into one program. From the project's
        libraries, the linker takes only symbols that the mutant's file does not define.
        """
        objects = [path for program in programs for path in sorted((TEST_FILES / f"{program}.dir").rglob("*.o"))]
        # Small loops of the tests share their work too, because of an object file that all test programs link.
        objects += sorted((SUPPORT_FILES / "share_everything.dir").rglob("*.o"))
        sources = [self._compiler, *objects, compiled]
        libraries = ["-Wl,--start-group", *sorted(WORK.rglob("*.a")), "-Wl,--end-group", "-ldl", "-pthread"]
        subprocess.run([*map(str, sources + libraries), "-o", str(linked)], check=True, capture_output=True)

    def _link_library(self, mutant: Mutant, compiled: Path, linked: Path) -> None:
        """Links the shared library. The mutant's object file replaces the object file of the original source."""
        objects = {
            file: WORK / command[command.index("-o") + 1]
            for file, command in self._commands.items()
            if Path(file).is_relative_to(ROOT / "ops") and "tests" not in Path(file).parts
        }
        objects[str(ROOT / mutant.file)] = compiled
        options = ["-shared", "-static-libstdc++", "-static-libgcc", f"-Wl,--version-script={ROOT}/ops/litebnn.map"]
        command = [self._compiler, *options, *map(str, objects.values()), "-ldl", "-pthread", "-o", str(linked)]
        subprocess.run(command, check=True, capture_output=True)

    def _outcome_of_library(self, folder: Path) -> Outcome:
        outcome = self._outcome_of_program(WORK / "ops" / "tests" / LIBRARY_TEST, LD_LIBRARY_PATH=str(folder))
        if outcome is Outcome.SURVIVED:
            library = str(folder / "liblitebnn.so")
            outcome = outcome_of([sys.executable, "-m", *NUMPY_TESTS], ROOT, SECONDS, LITEBNN_LIBRARY=library)
        return outcome

    def _outcome_of_program(self, program: Path, **environment: str) -> Outcome:
        command = [str(program), FILTER, "--gtest_brief=1", "--gtest_fail_fast"]
        return outcome_of(command, ROOT, SECONDS, **environment)

    @property
    def _compiler(self) -> str:
        return next(iter(self._commands.values()))[0]


def survivors(count: int, seed: int, jobs: int) -> tuple[int, list[Mutant]]:
    """Tries a random sample of the mutants that are not known to be equivalent to the original code, `jobs` at once.
    The function `survivors` in mutant.py describes the arguments.
    """
    candidates = (mutant for file in FILES for mutant in mutants_of(file) if not mutant.is_equivalent)
    workshop = Workshop()
    with ThreadPoolExecutor(jobs) as executor:
        return sample.survivors(candidates, count, seed, executor, workshop.trial)
