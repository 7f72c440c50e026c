"""Mutants of the converter's Python: reader and writer, graph, passes.

cosmic-ray makes them: one operator, number or condition of one module is another. A mutant is tried by those tests
of these folders and of whole models that run through what is changed; it is killed where one fails or takes far too
long.
"""

import ast
import importlib
import importlib.util
import os
import shutil
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mutants import mutant as sample
from mutants.mutant import Mutant, Outcome, Verdict
from mutants.trial import FORK, Collected, Recording, statement_lines, try_anew
from toolchains.targets import BUILD, ROOT, ToolkitError

WORK = BUILD / "mutants" / "python"
# What is mutated, however long the sources are edited meanwhile; each job has a copy of it.
COPY = WORK / "copy"
PACKAGE = Path("converter") / "litebnn"
PARTS = ("flatbuffer", "graph", "passes")
SOURCES = [str(PACKAGE / part) for part in PARTS]
# What is copied, so that the sources stay as they are and their tests find what they read.
COPIED = ("conftest.py", "converter", "fuzz", "pyproject.toml", "tests", "toolchains")
# These run whole models through all passes, need no TensorFlow, and take seconds.
WHOLE = (
    "tests/convert/test_subgraphs.py",
    "tests/convert/test_golden.py",
    "tests/convert/test_int8.py",
    "tests/convert/test_hidden_forms.py",
    "tests/convert/test_hidden_int8_forms.py",
)
TESTS = [*SOURCES, *WHOLE]
# The tests import these, which takes longer than most tests, and nothing of the package.
IMPORTED = (
    "pytest",
    "hypothesis.extra.numpy",
    "ai_edge_litert.interpreter",
    "ai_edge_litert.schema_py_generated",
    "rich.table",
)
# The operator | stands in annotations, which nothing evaluates: such a mutant computes the same.
ANNOTATIONS = "BitOr_"
# A comparison becomes another of its kind: names are equal or not, and have no order that any code means.
COMPARISON = "core/ReplaceComparisonOperator_"
KINDS = [{"Eq", "NotEq"}, {"Lt", "LtE", "Gt", "GtE"}, {"Is", "IsNot"}, {"In", "NotIn"}]


@dataclass(frozen=True)
class Place:
    """The nth place of a module in which one of cosmic-ray's operators finds something to change."""

    module: str
    operator: str
    occurrence: int


def modules() -> list[str]:
    """The modules to mutate, by their paths in the project."""
    found = (path for part in PARTS for path in (COPY / PACKAGE / part).rglob("*.py"))
    return sorted(str(path.relative_to(COPY)) for path in found if not path.stem.endswith("_test"))


def is_usable(name: str, operator: Any) -> bool:
    """Whether one of cosmic-ray's operators makes errors that somebody might make."""
    if ANNOTATIONS in name or operator.arguments():
        return False
    kinds = set(name.removeprefix(COMPARISON).split("_"))
    return not name.startswith(COMPARISON) or any(kinds <= kind for kind in KINDS)


def places() -> Iterator[Place]:
    """All places there are."""
    from cosmic_ray.ast import ast_nodes, get_ast
    from cosmic_ray.plugins import get_operator, operator_names

    operators = {name: get_operator(name)() for name in operator_names() if is_usable(name, get_operator(name))}
    for module in modules():
        nodes = list(ast_nodes(get_ast((COPY / module).read_text(encoding="utf-8"))))
        for name, operator in operators.items():
            count = sum(len(list(operator.mutation_positions(node))) for node in nodes)
            yield from (Place(module, name, occurrence) for occurrence in range(count))


def mutated(place: Place) -> tuple[Mutant, str, str] | None:
    """The mutant and the text of its module before and after; None where nothing is another, or it is no Python."""
    from cosmic_ray.mutating import mutate_code
    from cosmic_ray.plugins import get_operator

    code = (COPY / place.module).read_text(encoding="utf-8")
    changed = mutate_code(code, get_operator(place.operator)(), place.occurrence) or code
    try:
        ast.parse(changed)
    except SyntaxError:
        return None
    # A decorator is taken away with the blank lines before it.
    written = [
        [(n, line) for n, line in enumerate(text.splitlines(), start=1) if line.strip()] for text in (code, changed)
    ]
    found = (
        Mutant(place.module, n, line, after) for (n, line), (_, after) in zip(*written, strict=False) if line != after
    )
    return next(((mutant, code, changed) for mutant in found), None)


def copy_sources(folder: Path) -> None:
    """Copies what the tests need."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for name in COPIED:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy2(source, folder)


class Workshop:
    """A copy of the package, one module of which is changed at a time."""

    current: "Workshop"

    def __init__(self, recording: Recording) -> None:
        self._folder = WORK / str(os.getpid())
        shutil.copytree(COPY, self._folder)
        self._recording = recording
        self._collected = Collected(self._folder, recording, TESTS)

    def trial(self, place: Place) -> Verdict | None:
        """What the tests make of it; None where there is no mutant, or one that is known to compute the same."""
        found = mutated(place)
        if found is None or found[0].is_equivalent:
            return None
        return found[0], self._outcome(*found)

    def _outcome(self, mutant: Mutant, before: str, after: str) -> Outcome:
        tests, imported = self._recording.tests_of(mutant.file, statement_lines(before, mutant.line))
        if not imported:
            return self._collected.outcome(before, after, tests)
        copy = self._folder / mutant.file
        times = copy.stat()
        copy.write_text(after, encoding="utf-8")
        try:
            return try_anew(self._folder, self._recording, tests)
        finally:
            copy.write_text(before, encoding="utf-8")
            # The module's compiled form, which is told by this time, is right again.
            os.utime(copy, ns=(times.st_atime_ns, times.st_mtime_ns))


def _begin(recording: Recording) -> None:
    Workshop.current = Workshop(recording)


def _trial(place: Place) -> Verdict | None:
    return Workshop.current.trial(place)


def survivors(count: int, seed: int, jobs: int) -> tuple[int, list[Mutant]]:
    """Tries a sample, `jobs` at once, of the mutants that are not known to be equivalent: `mutant.survivors`.

    Raises:
        ToolkitError: cosmic-ray or coverage is not installed, or the tests fail without a mutant.
    """
    for needed in ("cosmic_ray", "coverage"):
        if importlib.util.find_spec(needed) is None:
            raise ToolkitError(f"{needed} is missing: pip install {needed.replace('_', '-')}")
    shutil.rmtree(WORK, ignore_errors=True)
    copy_sources(COPY)
    os.environ["LITEBNN_LIBRARY"] = str(BUILD / "host" / "liblitebnn.so")
    for name in IMPORTED:
        importlib.import_module(name)
    recording = Recording(COPY)
    if not recording.make(SOURCES, TESTS):
        raise ToolkitError("the tests of the mutants fail without any: invoke test")
    with ProcessPoolExecutor(jobs, FORK, initializer=_begin, initargs=(recording,)) as executor:
        return sample.survivors(places(), count, seed, executor, _trial)
