"""One pass a file, in the folder of its phase; what is private stays so; the schema is known in one folder."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from litebnn.flatbuffer.schema import schema
from litebnn.graph import FACTS
from litebnn.passes import BINARY_PHASES, ON_REQUEST, PHASES

PACKAGE = Path(__file__).parent
PASSES = PACKAGE / "passes"
MOST_MODULES = 16


def modules(folder: Path) -> list[Path]:
    return sorted(p for p in folder.rglob("*.py") if not p.name.endswith("_test.py"))


def imported(path: Path) -> Iterator[tuple[str, str]]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("litebnn"):
            for alias in node.names:
                yield node.module or "", alias.name


def test_nobody_imports_what_a_module_keeps_to_itself() -> None:
    for path in modules(PACKAGE):
        assert not [name for _, name in imported(path) if name.startswith("_") and name != "__version__"], path


def test_a_pass_imports_no_other_pass() -> None:
    for path in modules(PASSES):
        if path != PASSES / "__init__.py":
            assert not [module for module, _ in imported(path) if module.startswith("litebnn.passes")], path


def test_a_pass_names_no_builtin_op_that_models_are_not_checked_for() -> None:
    """Of a kind that is not in the table, validation lets an op pass that lacks the inputs which a pass then reads."""
    builtins = {name for name in vars(schema.BuiltinOperator) if name.isupper()}
    checked = {name for name, facts in FACTS.items() if facts.most}
    assert len(checked) > 40
    for path in modules(PASSES):
        constants = {node.value for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Constant)}
        assert constants & builtins <= checked, path


def test_only_the_flatbuffer_folder_knows_the_schema() -> None:
    fields = {key for name in vars(schema) if name.endswith("T") for key in _fields(name)}
    camel_case = {field for field in fields if re.search("[a-z0-9][A-Z]", field)}
    assert "strideH" in camel_case
    for path in modules(PACKAGE):
        if (PACKAGE / "flatbuffer") in path.parents:
            continue
        assert ("litebnn.flatbuffer", "schema") not in imported(path), path
        names = {node.attr for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Attribute)}
        assert not names & camel_case, path
        assert not any(module == "litebnn.flatbuffer.schema" for module, _ in imported(path)), path


def _fields(name: str) -> list[str]:
    kind = getattr(schema, name)
    return list(vars(kind())) if isinstance(kind, type) and hasattr(kind, "Pack") else []


@pytest.mark.parametrize("phase", PHASES)
def test_a_folder_holds_the_passes_of_its_phase_each_with_its_test(phase: str) -> None:
    folder = PASSES / phase
    names = {path.stem for path in modules(folder)} - {"__init__"}
    ran = {one.__name__: one.__module__ for one in (*PHASES[phase], *ON_REQUEST.get(phase, ()))}
    assert {name for name, module in ran.items() if module.startswith(f"litebnn.passes.{phase}.")} == names
    assert all(module.endswith("." + name) for name, module in ran.items())
    assert {path.stem.removesuffix("_test") for path in folder.glob("*_test.py")} == names
    assert len(names) <= MOST_MODULES


def test_the_binary_phases_are_the_first() -> None:
    assert tuple(PHASES)[: len(BINARY_PHASES)] == BINARY_PHASES
