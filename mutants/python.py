"""Tries mutants of the converter's Python code: reader and writer, graph, rules.

The package cosmic-ray makes a mutant by changing one operator, number or condition of one module. The tests of the
module's folder and of whole models are run on the mutant, if they execute the changed line. The mutant is killed if one
of these tests fails or takes far too long.
"""

import ast
import itertools
import json
import os
import shutil
import sys
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from queue import Queue
from typing import Any

from mutants import mutant as sample
from mutants.mutant import Mutant, Outcome, Verdict, outcome_of
from toolchains.needs import missing
from toolchains.targets import BUILD, ROOT, ToolkitError

WORK = BUILD / "mutants" / "python"
# The folder with the copy of the sources that is mutated, so that users can edit the sources meanwhile. Each job has
# its own copy of this folder.
COPY = WORK / "copy"
PACKAGE = Path("converter") / "litebnn"
PARTS = ("flatbuffer", "graph", "rules", "safety")
SOURCES = [str(PACKAGE / part) for part in PARTS]
# The files and folders to copy: everything that the tests read.
COPIED = ("conftest.py", "converter", "fuzz", "pyproject.toml", "tests", "toolchains")
# The tests that run whole models through all rules, need no TensorFlow, and take only some seconds.
WHOLE = (
    "tests/convert/test_subgraphs.py",
    "tests/convert/test_golden.py",
    "tests/convert/test_int8.py",
    "tests/convert/test_hidden_forms.py",
    "tests/convert/test_hidden_int8_forms.py",
)
TESTS = [*SOURCES, *WHOLE]
PYTEST = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "-W", "ignore", "--hypothesis-seed=0"]
# Seconds of the tests that try one mutant. They may take SLOWER times as long, and MORE seconds for imports.
SECONDS, SLOWER, MORE = 60.0, 5.0, 20.0
# The operator | occurs in annotations, which nothing evaluates. A mutant that changes it is therefore equivalent to the
# original.
ANNOTATIONS = "BitOr_"
# A comparison is replaced only by another comparison of its kind. Names, for example, can be equal or not, but have no
# meaningful order.
COMPARISON = "core/ReplaceComparisonOperator_"
KINDS = [{"Eq", "NotEq"}, {"Lt", "LtE", "Gt", "GtE"}, {"Is", "IsNot"}, {"In", "NotIn"}]


@dataclass(frozen=True)
class Site:
    """A place in a module at which one of cosmic-ray's operators can change something. `occurrence` counts these
    places.
    """

    module: str
    operator: str
    occurrence: int


def modules() -> list[str]:
    """The modules to mutate, as paths in the project."""
    found = (path for part in PARTS for path in (COPY / PACKAGE / part).rglob("*.py"))
    return sorted(str(path.relative_to(COPY)) for path in found if not path.stem.endswith("_test"))


def is_usable(name: str, operator: Any) -> bool:
    """True if this operator of cosmic-ray makes plausible errors."""
    if ANNOTATIONS in name or operator.arguments():
        return False
    kinds = set(name.removeprefix(COMPARISON).split("_"))
    return not name.startswith(COMPARISON) or any(kinds <= kind for kind in KINDS)


def sites() -> Iterator[Site]:
    """All mutation sites of all modules."""
    from cosmic_ray.ast import ast_nodes, get_ast
    from cosmic_ray.plugins import get_operator, operator_names

    operators = {name: get_operator(name)() for name in operator_names() if is_usable(name, get_operator(name))}
    for module in modules():
        nodes = list(ast_nodes(get_ast((COPY / module).read_text(encoding="utf-8"))))
        for name, operator in operators.items():
            count = sum(len(list(operator.mutation_positions(node))) for node in nodes)
            yield from (Site(module, name, occurrence) for occurrence in range(count))


def mutated(site: Site) -> tuple[Mutant, str, str] | None:
    """The mutant, and its module's text before and after; None if nothing changes or the result is not valid Python."""
    from cosmic_ray.mutating import mutate_code
    from cosmic_ray.plugins import get_operator

    code = (COPY / site.module).read_text(encoding="utf-8")
    changed = mutate_code(code, get_operator(site.operator)(), site.occurrence) or code
    try:
        ast.parse(changed)
    except SyntaxError:
        return None
    # Blank lines of the original and the mutated file are not compared, because the removal of a decorator also removes
    # the blank lines before it.
    written = [
        [(n, line) for n, line in enumerate(text.splitlines(), start=1) if line.strip()] for text in (code, changed)
    ]
    found = (
        Mutant(site.module, n, line, after) for (n, line), (_, after) in zip(*written, strict=False) if line != after
    )
    return next(((mutant, code, changed) for mutant in found), None)


def copy_sources(folder: Path) -> None:
    """Copies the files and folders of COPIED, which the tests need, into a new folder."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for name in COPIED:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy2(source, folder)


@dataclass
class Recording:
    """The tests that execute each line of each file, by name ("" for an import), and the seconds of each test."""

    tests: Mapping[str, Mapping[str, list[str]]]
    seconds: Mapping[str, float]

    def tests_of(self, file: str, lines: range) -> list[str]:
        """The tests to run if these lines change: first those of the file's own test module, then those of its folder,
        then all others, each the quickest first, and SECONDS long together.

        A line that an import executes can affect any test of the file. Tests of code near this line may depend on it
        without executing it.
        """
        near = f"{Path(file).with_suffix('')}_test.py::", f"{Path(file).parent}/"
        executed = self.tests.get(file, {})
        found = {test for line in lines for test in executed.get(str(line), [])}
        if "" in found:
            found = {test for tests in executed.values() for test in tests}
            found |= {test for test in self.seconds if test.startswith(near)}
        ordered = sorted(found - {""}, key=lambda test: (*(not test.startswith(x) for x in near), self.seconds[test]))
        ends = itertools.accumulate(self.seconds[test] for test in ordered)
        return [test for test, end in zip(ordered, ends, strict=True) if end <= SECONDS]


def statement_lines(text: str, line: int) -> range:
    """The lines of the innermost statement that contains `line`; of a compound statement, only the head's lines."""
    found = range(line, line + 1)
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.stmt) and node.lineno <= line <= (node.end_lineno or node.lineno):
            body = getattr(node, "body", None)
            last = body[0].lineno - 1 if body else node.end_lineno or node.lineno
            if line <= max(last, node.lineno):
                found = range(node.lineno, max(last, node.lineno) + 1)
    return found


class Workshop:
    """Copies of the package; each trial changes one module of one copy."""

    def __init__(self, jobs: int) -> None:
        copy_sources(COPY)
        recorded = WORK / "recording.json"
        plugin = {"LITEBNN_RECORDING": str(recorded), "LITEBNN_RECORDED": os.pathsep.join(SOURCES)}
        if self._outcome(COPY, ["-p", "mutants.recording", *TESTS], 3600, **plugin) is not Outcome.SURVIVED:
            raise ToolkitError("the tests of the mutants fail without any: invoke test")
        self._recording = Recording(*json.loads(recorded.read_text(encoding="utf-8")))
        self._copies: Queue[Path] = Queue()
        for job in range(jobs):
            self._copies.put(Path(shutil.copytree(COPY, WORK / str(job))))

    def trial(self, site: Site) -> Verdict | None:
        """The result of a mutant's tests; None if there is no mutant or it is known to be equivalent."""
        found = mutated(site)
        if found is None or found[0].is_equivalent:
            return None
        mutant, before, after = found
        tests = self._recording.tests_of(mutant.file, statement_lines(before, mutant.line))
        if not tests:
            return mutant, Outcome.SURVIVED
        folder = self._copies.get()
        try:
            (folder / mutant.file).write_text(after, encoding="utf-8")
            chosen = folder / "chosen-tests.txt"
            chosen.write_text("\n".join(tests), encoding="utf-8")
            seconds = MORE + SLOWER * sum(self._recording.seconds[test] for test in tests)
            return mutant, self._outcome(folder, [f"@{chosen}"], round(seconds))
        finally:
            (folder / mutant.file).write_text(before, encoding="utf-8")
            self._copies.put(folder)

    @staticmethod
    def _outcome(folder: Path, arguments: list[str], seconds: int, **environment: str) -> Outcome:
        path = os.pathsep.join(map(str, (folder / "converter", folder, ROOT)))
        library = str(BUILD / "host" / "liblitebnn.so")
        # Equal sizes and times of a module's two forms would pass for the same, compiled.
        fixed = {"PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1", "LITEBNN_LIBRARY": library}
        return outcome_of([*PYTEST, *arguments], folder, seconds, **fixed, **environment)


def survivors(count: int, seed: int, jobs: int) -> tuple[int, list[Mutant]]:
    """Tries a random sample of the mutants that are not known to be equivalent, `jobs` at once. The
    function `survivors` in mutant.py describes the arguments.

    Raises:
        ToolkitError: cosmic-ray or coverage is not installed, or the tests fail without a mutant.
    """
    for needed in ("cosmic-ray", "coverage"):
        if reason := missing(needed):
            raise ToolkitError(reason)
    shutil.rmtree(WORK, ignore_errors=True)
    workshop = Workshop(jobs)
    with ThreadPoolExecutor(jobs) as executor:
        return sample.survivors(sites(), count, seed, executor, workshop.trial)
