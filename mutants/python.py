"""Mutants of the converter's Python: reader and writer, graph, passes.

cosmic-ray makes them: one operator, number or condition of one module is another. A mutant is tried by those tests
of these folders and of whole models that run through what is changed; it is killed where one fails or takes far too
long.
"""

import ast
import importlib
import importlib.util
import os
import random
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from mutants.mutant import Mutant
from mutants.trial import Collected, Recording, fails_anew, statement_lines
from toolchains.targets import BUILD, ROOT, ToolkitError

WORK = BUILD / "mutants" / "python"
PACKAGE = Path("converter") / "litebnn"
PARTS = ("flatbuffer", "graph", "passes")
# What is copied, so that the sources stay as they are and their tests find what they read.
COPIED = ("conftest.py", "converter", "fuzz", "pyproject.toml", "tests", "toolchains")
# These run whole models through all passes, need no TensorFlow, and take seconds.
WHOLE = (
    "tests/convert/test_subgraphs.py",
    "tests/convert/test_golden.py",
    "tests/convert/test_int8.py",
    "tests/convert/test_hidden_forms.py",
)
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


@dataclass(frozen=True)
class Place:
    """The nth place of a module in which one of cosmic-ray's operators finds something to change."""

    module: str
    operator: str
    occurrence: int


def modules() -> list[str]:
    """The modules to mutate, by their paths in the project."""
    found = (path for part in PARTS for path in (WORK / PACKAGE / part).rglob("*.py"))
    return sorted(str(path.relative_to(WORK)) for path in found if not path.stem.endswith("_test"))


def places() -> Iterator[Place]:
    """All places there are."""
    from cosmic_ray.ast import ast_nodes, get_ast
    from cosmic_ray.plugins import get_operator, operator_names

    usable = (name for name in operator_names() if ANNOTATIONS not in name and not get_operator(name).arguments())
    operators = {name: get_operator(name)() for name in usable}
    for module in modules():
        nodes = list(ast_nodes(get_ast((WORK / module).read_text(encoding="utf-8"))))
        for name, operator in operators.items():
            count = sum(len(list(operator.mutation_positions(node))) for node in nodes)
            yield from (Place(module, name, occurrence) for occurrence in range(count))


def mutated(place: Place) -> tuple[Mutant, str, str] | None:
    """The mutant and the text of its module before and after; None where nothing is another, or it is no Python."""
    from cosmic_ray.mutating import mutate_code
    from cosmic_ray.plugins import get_operator

    code = (WORK / place.module).read_text(encoding="utf-8")
    changed = mutate_code(code, get_operator(place.operator)(), place.occurrence) or code
    try:
        ast.parse(changed)
    except SyntaxError:
        return None
    lines = zip(code.splitlines(), changed.splitlines(), strict=False)
    found = (Mutant(place.module, n, *pair) for n, pair in enumerate(lines, start=1) if pair[0] != pair[1])
    return next(((mutant, code, changed) for mutant in found), None)


class Workshop:
    """A copy of the package, and what its tests run through.

    Raises:
        ToolkitError: cosmic-ray or coverage is not installed, or the tests fail without a mutant.
    """

    def __init__(self) -> None:
        for needed in ("cosmic_ray", "coverage"):
            if importlib.util.find_spec(needed) is None:
                raise ToolkitError(f"{needed} is missing: pip install {needed.replace('_', '-')}")
        shutil.rmtree(WORK, ignore_errors=True)
        WORK.mkdir(parents=True)
        for name in COPIED:
            source = ROOT / name
            if source.is_dir():
                shutil.copytree(source, WORK / name, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                shutil.copy2(source, WORK)
        os.environ["LITEBNN_LIBRARY"] = str(BUILD / "host" / "liblitebnn.so")
        for name in IMPORTED:
            importlib.import_module(name)
        parts = [str(PACKAGE / part) for part in PARTS]
        tests = [*parts, *WHOLE]
        self._recording = Recording(WORK)
        if not self._recording.make(parts, tests):
            raise ToolkitError("the tests of the mutants fail without any: invoke test")
        self._collected = Collected(WORK, self._recording, tests)

    def is_killed(self, mutant: Mutant, before: str, after: str) -> bool:
        """Whether a test notices."""
        tests, imported = self._recording.tests_of(mutant.file, statement_lines(before, mutant.line))
        if not imported:
            return self._collected.fails(before, after, tests)
        copy = WORK / mutant.file
        times = copy.stat()
        copy.write_text(after, encoding="utf-8")
        try:
            return fails_anew(WORK, self._recording, tests)
        finally:
            copy.write_text(before, encoding="utf-8")
            # The module's compiled form, which is told by this time, is right again.
            os.utime(copy, ns=(times.st_atime_ns, times.st_mtime_ns))

    def close(self) -> None:
        """Ends its process."""
        self._collected.close()


def survivors(count: int, seed: int) -> tuple[int, list[Mutant]]:
    """Tries a random sample: how many were tried, and those that no test notices.

    Raises:
        ToolkitError: cosmic-ray or coverage is not installed, or the tests fail without a mutant.
    """
    workshop = Workshop()
    every = list(places())
    random.Random(seed).shuffle(every)
    tried, alive = 0, []
    for mutant, before, after in filter(None, map(mutated, every)):
        if tried == count:
            break
        if mutant.is_equivalent:
            continue
        tried += 1
        if not workshop.is_killed(mutant, before, after):
            alive.append(mutant)
            print(f"survived: {mutant}", flush=True)
    workshop.close()
    return tried, alive
