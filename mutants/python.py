"""Mutants of the converter's Python: reader and writer, graph, passes.

cosmic-ray makes them: one operator, number or condition of one module is another. A mutant is tried in a copy of the
package, by the tests beside its module, those of its folder, and then by whole models; it is killed where one fails or
takes far too long. Each of these is a fork of a process that has imported what takes long, and nothing of litebnn.
"""

import importlib
import importlib.util
import multiprocessing
import os
import random
import resource
import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from mutants.mutant import Mutant
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
# The tests import these, which takes longer than most tests.
IMPORTED = (
    "pytest",
    "hypothesis.extra.numpy",
    "ai_edge_litert.interpreter",
    "ai_edge_litert.schema_py_generated",
    "rich.table",
)
# The operator | stands in annotations, which nothing evaluates: such a mutant computes the same.
ANNOTATIONS = "BitOr_"
# The tests of a folder take seconds and little memory. It is processor time that counts, however busy the machine is.
SECONDS, BYTES = 120, 8 << 30


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


def mutated(place: Place) -> tuple[Mutant, str] | None:
    """The mutant and the text of its module; None where nothing is another."""
    from cosmic_ray.mutating import mutate_code
    from cosmic_ray.plugins import get_operator

    code = (WORK / place.module).read_text(encoding="utf-8")
    changed = mutate_code(code, get_operator(place.operator)(), place.occurrence) or code
    lines = zip(code.splitlines(), changed.splitlines(), strict=False)
    found = (Mutant(place.module, n, *pair) for n, pair in enumerate(lines, start=1) if pair[0] != pair[1])
    return next(((mutant, changed) for mutant in found), None)


def tests_of(module: str) -> list[list[str]]:
    """The tests to run, the quickest first."""
    beside = (WORK / module).with_name(f"{Path(module).stem}_test.py")
    folder = str(Path(module).parent)
    return [[str(beside.relative_to(WORK))] if beside.is_file() else [], [folder], list(WHOLE)]


def is_killed(mutant: Mutant, text: str) -> bool:
    """Whether a test notices."""
    copy = WORK / mutant.file
    before, times = copy.read_text(encoding="utf-8"), copy.stat()
    copy.write_text(text, encoding="utf-8")
    try:
        return any(_fail(tests) for tests in filter(None, tests_of(mutant.file)))
    finally:
        copy.write_text(before, encoding="utf-8")
        # The module's compiled form, which is told by this time, is right again.
        os.utime(copy, ns=(times.st_atime_ns, times.st_mtime_ns))


def _fail(tests: list[str], *, keep_compiled: bool = False) -> bool:
    """Whether one of the tests, files and folders of the copy, fails or hangs."""
    process = multiprocessing.get_context("fork").Process(target=_run, args=(tests, keep_compiled))
    process.start()
    process.join()
    return process.exitcode != 0


def _run(tests: list[str], keep_compiled: bool) -> None:
    """Ends this process with pytest's exit code."""
    os.chdir(WORK)
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
    resource.setrlimit(resource.RLIMIT_AS, (BYTES, BYTES))
    with open(os.devnull, "wb") as nowhere:  # noqa: PTH123
        os.dup2(nowhere.fileno(), 1)
        os.dup2(nowhere.fileno(), 2)
    os.environ["LITEBNN_LIBRARY"] = str(BUILD / "host" / "liblitebnn.so")
    sys.path[:0] = [str(WORK / "converter"), str(WORK)]
    sys.dont_write_bytecode = not keep_compiled
    flags = ("-x", "-q", "-p", "no:cacheprovider", "-W", "ignore", "--hypothesis-seed=0")
    os._exit(importlib.import_module("pytest").main([*flags, *tests]))


def survivors(count: int, seed: int) -> tuple[int, list[Mutant]]:
    """Tries a random sample: how many were tried, and those that no test notices.

    Raises:
        ToolkitError: cosmic-ray is not installed, or the tests fail without a mutant.
    """
    if importlib.util.find_spec("cosmic_ray") is None:
        raise ToolkitError("cosmic-ray is missing: pip install cosmic-ray")
    shutil.rmtree(WORK, ignore_errors=True)
    WORK.mkdir(parents=True)
    for name in COPIED:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, WORK / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy2(source, WORK)
    for name in IMPORTED:
        importlib.import_module(name)
    if _fail([*(str(PACKAGE / part) for part in PARTS), *WHOLE], keep_compiled=True):
        raise ToolkitError("the tests of the mutants fail without any: invoke test")
    every = list(places())
    random.Random(seed).shuffle(every)
    tried, alive = 0, []
    for mutant, text in filter(None, map(mutated, every)):
        if tried == count:
            break
        if mutant.is_equivalent:
            continue
        tried += 1
        if not is_killed(mutant, text):
            alive.append(mutant)
            print(f"survived: {mutant}", flush=True)
    return tried, alive
