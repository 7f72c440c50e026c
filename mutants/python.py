"""Tries mutants of the converter's Python code: reader and writer, graph, rules.

The package cosmic-ray makes a mutant by changing one operator, number or condition of one module. The tests of the
module's folder and of whole models are run on the mutant, if they execute the changed line. The mutant is killed if one
of these tests fails or takes far too long.
"""

import ast
import importlib
import os
import shutil
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mutants import mutant as sample
from mutants.mutant import Mutant, Outcome, Verdict
from mutants.trial import FORK, Collected, Recording, statement_lines, try_in_new_process
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
# Modules that the trial process imports once for all tests, because importing them takes longer than most tests. None
# of them imports litebnn, the code that is mutated.
IMPORTED = (
    "pytest",
    "hypothesis.extra.numpy",
    "ai_edge_litert.interpreter",
    "ai_edge_litert.schema_py_generated",
    "rich.table",
)
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


class Workshop:
    """A copy of the package, in which one module is changed at a time."""

    current: "Workshop"

    def __init__(self, recording: Recording) -> None:
        self._folder = WORK / str(os.getpid())
        shutil.copytree(COPY, self._folder)
        self._recording = recording
        self._collected = Collected(self._folder, recording, TESTS)

    def trial(self, site: Site) -> Verdict | None:
        """The result of a mutant's tests; None if there is no mutant or it is known to be equivalent."""
        found = mutated(site)
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
            return try_in_new_process(self._folder, self._recording, tests)
        finally:
            copy.write_text(before, encoding="utf-8")
            # The file also gets its old modification time again, because Python uses it to find out if the module's
            # compiled form is valid.
            os.utime(copy, ns=(times.st_atime_ns, times.st_mtime_ns))


def _begin(recording: Recording) -> None:
    Workshop.current = Workshop(recording)


def _trial(site: Site) -> Verdict | None:
    return Workshop.current.trial(site)


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
    copy_sources(COPY)
    os.environ["LITEBNN_LIBRARY"] = str(BUILD / "host" / "liblitebnn.so")
    for name in IMPORTED:
        importlib.import_module(name)
    recording = Recording(COPY)
    if not recording.make(SOURCES, TESTS):
        raise ToolkitError("the tests of the mutants fail without any: invoke test")
    with ProcessPoolExecutor(jobs, FORK, initializer=_begin, initargs=(recording,)) as executor:
        return sample.survivors(sites(), count, seed, executor, _trial)
