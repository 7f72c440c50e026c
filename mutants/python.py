"""Mutants of the converter's Python: reader and writer, graph, passes.

cosmic-ray makes them: one operator, number or condition of one module is another. A mutant is tried in a copy of the
package, by the tests beside its module and then by whole models; it is killed where one fails or hangs.
"""

import importlib.util
import os
import random
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from toolchains.targets import BUILD, ROOT, ToolkitError

WORK = BUILD / "mutants" / "python"
PACKAGE = Path("converter") / "litebnn"
PARTS = ("flatbuffer", "graph", "passes")
# What is copied, so that the sources stay as they are and their tests find what they read.
COPIED = ("conftest.py", "converter", "fuzz", "pyproject.toml", "tests", "toolchains")
# These run whole models through all passes, and take seconds.
WHOLE = (
    "tests/convert/test_golden.py",
    "tests/convert/test_hidden_forms.py",
    "tests/convert/test_quantized_sources.py",
    "tests/convert/test_subgraphs.py",
)
# The operator | stands in annotations, which nothing evaluates: such a mutant computes the same.
ANNOTATIONS = "BitOr_"
# Tests of one module take seconds; what takes longer hangs.
SECONDS = 300


@dataclass(frozen=True)
class Mutant:
    """The nth place of a module in which one of cosmic-ray's operators finds something to change."""

    module: str
    operator: str
    occurrence: int

    def __str__(self) -> str:
        return f"{self.module}: {self.operator.removeprefix('core/')}, place {self.occurrence}"


def modules() -> list[str]:
    """The modules to mutate, by their paths in the project."""
    found = (path for part in PARTS for path in (ROOT / PACKAGE / part).rglob("*.py"))
    return sorted(str(path.relative_to(ROOT)) for path in found if not path.stem.endswith("_test"))


def mutants() -> Iterator[Mutant]:
    """All mutants there are."""
    from cosmic_ray.ast import ast_nodes, get_ast
    from cosmic_ray.plugins import get_operator, operator_names

    usable = (name for name in operator_names() if ANNOTATIONS not in name and not get_operator(name).arguments())
    operators = {name: get_operator(name)() for name in usable}
    for module in modules():
        nodes = list(ast_nodes(get_ast((ROOT / module).read_text(encoding="utf-8"))))
        for name, operator in operators.items():
            places = sum(len(list(operator.mutation_positions(node))) for node in nodes)
            yield from (Mutant(module, name, place) for place in range(places))


def mutated(mutant: Mutant) -> str | None:
    """The module's text with the change in it; None where nothing is another."""
    from cosmic_ray.mutating import mutate_code
    from cosmic_ray.plugins import get_operator

    code = (ROOT / mutant.module).read_text(encoding="utf-8")
    changed = mutate_code(code, get_operator(mutant.operator)(), mutant.occurrence)
    return None if changed == code else changed


def tests_of(module: str) -> list[list[str]]:
    """The tests to run, the quickest first."""
    beside = (ROOT / module).with_name(f"{Path(module).stem}_test.py")
    folder = str(Path(module).parent)
    return [[str(beside.relative_to(ROOT))] if beside.is_file() else [], [folder], list(WHOLE)]


def is_killed(mutant: Mutant, text: str) -> bool:
    """Whether a test notices."""
    copy = WORK / mutant.module
    before = copy.read_text(encoding="utf-8")
    copy.write_text(text, encoding="utf-8")
    flags = ["-x", "-q", "-p", "no:cacheprovider", "-W", "ignore"]
    environment = os.environ | {
        "PYTHONPATH": str(WORK / "converter"),
        "PYTHONDONTWRITEBYTECODE": "1",
        "LITEBNN_LIBRARY": str(BUILD / "host" / "liblitebnn.so"),
    }
    try:
        for tests in filter(None, tests_of(mutant.module)):
            command = [sys.executable, "-m", "pytest", *flags, *tests]
            run = subprocess.run(command, cwd=WORK, env=environment, capture_output=True, timeout=SECONDS)
            if run.returncode:
                return True
        return False
    except subprocess.TimeoutExpired:
        return True
    finally:
        copy.write_text(before, encoding="utf-8")


def survivors(count: int, seed: int) -> tuple[int, list[Mutant]]:
    """Tries a random sample: how many were tried, and those that no test notices.

    Raises:
        ToolkitError: cosmic-ray is not installed.
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
    every = list(mutants())
    sample = random.Random(seed).sample(every, min(count, len(every)))
    tried, alive = 0, []
    for mutant in sample:
        text = mutated(mutant)
        if text is None:
            continue
        tried += 1
        if not is_killed(mutant, text):
            alive.append(mutant)
            print(f"survives: {mutant}", flush=True)
    return tried, alive
