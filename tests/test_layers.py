"""Tests that dependencies point one way: between the layers of the C++ library and of the Python package, and in the
allowed imports."""

import ast
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from litebnn.flatbuffer.schema import schema
from litebnn.graph import FACTS
from tests.support.documents import read

ROOT = Path(__file__).resolve().parents[1]
OPS = ROOT / "ops"
PACKAGE = ROOT / "converter" / "litebnn"

# The layers, each with the layers that it uses. A layer is a file or folder, without its suffix. It may use itself, the
# layers in its list, and everything that these may use. A file belongs to the innermost layer that contains it.
Layers = dict[str, list[str]]
CPP_LAYERS: Layers = {
    "include": [],
    "kernels/kernels": [],
    "kernels/platform": [],
    "kernels/isa": ["kernels/kernels", "kernels/platform"],
    "kernels": ["kernels/isa"],
    "tflite/runtime": [],
    "tflite/ops": ["tflite/runtime", "kernels/kernels", "kernels/platform"],
    "tflite/partition": ["tflite/ops"],
    "tflite/entry": ["tflite/partition", "include"],
}
PYTHON_LAYERS: Layers = {
    "errors": [],
    "system": [],
    "child": ["errors", "system"],
    "model_files": ["errors"],
    "unique_names": [],
    "zoo": ["errors"],
    "keras": ["zoo"],
    "torch": ["zoo"],
    "contract": ["errors"],
    "graph": ["contract"],
    "flatbuffer": ["graph"],
    "analysis": ["graph"],
    "build": ["analysis"],
    "rules": ["build"],
    "frontends": ["flatbuffer", "model_files", "unique_names"],
    "options": ["errors"],
    "runtime": ["flatbuffer", "model_files", "system", "unique_names"],
    "boards": ["errors"],
    "evaluate": ["boards", "runtime", "zoo"],
    "report": ["build", "child", "runtime"],
    "stem": ["build"],
    "calibration": ["evaluate", "options", "stem"],
    "benchmark": ["boards", "runtime"],
    "doctor": ["report"],
    "model_explorer": ["report"],
    "assumption": ["report", "rules"],
    "verification": ["assumption", "evaluate", "options"],
    "convert": ["calibration", "frontends", "verification"],
    "micro": ["convert"],
    "classifier": ["evaluate"],
    "__init__": ["classifier", "convert", "evaluate", "micro"],
    "zoo/convert": ["convert", "keras"],
    "cli": ["__init__", "benchmark", "doctor", "zoo/convert"],
    "__main__": ["cli"],
}

# Small modules that many others import, and that the picture of the layers leaves out.
ALONE = {
    *("errors", "unique_names", "child", "model_files", "system", "contract", "options"),
    *("zoo", "zoo/convert"),
    *("__init__", "__main__"),
}


def layer_of(file: str, layers: Layers) -> str | None:
    """The layer that contains a file.

    >>> layer_of("kernels/isa/isa.h", CPP_LAYERS)
    'kernels/isa'
    """
    path = Path(file).with_suffix("")
    return next((str(folder) for folder in (path, *path.parents) if str(folder) in layers), None)


def known_to(layer: str, layers: Layers) -> set[str]:
    """A layer of the code (a folder or module) and all layers that its files may use, directly or indirectly."""
    return {layer}.union(*(known_to(below, layers) for below in layers[layer]))


def violations(uses: dict[str, list[str]], layers: Layers) -> list[str]:
    """The error messages for files that use other files against the rules. For each file, `uses` has the paths that
    it uses.
    """
    found = [f"{file}: in no layer" for file in uses if layer_of(file, layers) is None]
    for file, used in uses.items():
        layer = layer_of(file, layers)
        for other in used if layer else []:
            if layer_of(other, layers) not in known_to(str(layer), layers):
                found.append(f"{file}: may not use {other}")
    return found


def cpp_uses() -> dict[str, list[str]]:
    """The files that each C++ file of the library includes by a path from ops/ or ops/include/."""
    uses = {}
    for folder in ("include", "kernels", "tflite"):
        for file in sorted((OPS / folder).rglob("*.[chS]*")):
            included = re.findall(r'^\s*#\s*include "([^"]+)"', file.read_text(encoding="utf-8"), re.M)
            public = [name if (OPS / name).exists() else f"include/{name}" for name in included]
            uses[file.relative_to(OPS).as_posix()] = public
    return uses


def modules(folder: Path) -> list[Path]:
    """The modules in a folder and its subfolders, without tests, because tests may import anything."""
    return [file for file in sorted(folder.rglob("*.py")) if not file.stem.endswith("_test")]


def imported_by(file: Path) -> Iterator[str]:
    """The full names that a module imports from the package, in any function, such as litebnn.graph.Graph.

    The name `litebnn.__version__` belongs to no layer, so any module may import it.
    """
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            package = ["litebnn", *file.relative_to(PACKAGE).parent.parts]
            parent = package[: len(package) - node.level + 1] if node.level else []
            module = ".".join([*parent, *([node.module] if node.module else [])])
            names = [f"{module}.{alias.name}" for alias in node.names]
        else:
            continue
        yield from (name for name in names if name.split(".")[0] == "litebnn" and name != "litebnn.__version__")


def module_of(name: str) -> str:
    """The file of a module, or of the module that defines a name, as a path in the package."""
    path = PACKAGE.joinpath(*name.split(".")[1:])
    files = (path.with_suffix(".py"), path / "__init__.py", path.parent / "__init__.py", path.parent.with_suffix(".py"))
    return str(next(file for file in files if file.is_file()).relative_to(PACKAGE))


def python_uses() -> dict[str, list[str]]:
    """For each module of the package litebnn, the other modules of the package that it imports, as paths of files."""
    return {str(file.relative_to(PACKAGE)): sorted({*map(module_of, imported_by(file))}) for file in modules(PACKAGE)}


@pytest.mark.parametrize(("find_uses", "layers"), [(cpp_uses, CPP_LAYERS), (python_uses, PYTHON_LAYERS)])
def test_dependencies_point_one_way(find_uses: Callable[[], dict[str, list[str]]], layers: Layers) -> None:
    uses = find_uses()
    assert violations(uses, layers) == []
    # The following assertions check that the imports were found: every layer has a file, and most files use another
    # file.
    assert {layer_of(file, layers) for file in uses} == set(layers)
    assert sum(bool(used) for used in uses.values()) > len(uses) / 2


def picture(subgraph: str) -> set[tuple[str, str]]:
    """The arrows in one part of the picture in docs/source-map.md, as pairs of layers."""
    text = read("docs/source-map.md")
    labels = dict(re.findall(r'\b(\w+)\["([^"]+)"\]', text))
    (part,) = re.findall(rf"^  subgraph {subgraph}\[.*?^  end$", text, re.M | re.S)
    arrows = re.findall(r"^    (\w+)\S* --> (\w+)", part, re.M)
    return {
        (labels.get(one, one).removesuffix(".h"), labels.get(other, other).removesuffix(".h")) for one, other in arrows
    }


@pytest.mark.parametrize(
    ("subgraph", "layers", "not_drawn"),
    [
        ("library", CPP_LAYERS, {"include"}),
        ("package", PYTHON_LAYERS, ALONE | {"keras", "torch"}),
    ],
)
def test_the_picture_shows_the_layers(subgraph: str, layers: Layers, not_drawn: set[str]) -> None:
    def drawn_below(layer: str) -> set[str]:
        return {drawn for below in layers[layer] for drawn in (drawn_below(below) if below in not_drawn else {below})}

    expected = {(layer, below) for layer in set(layers) - not_drawn for below in drawn_below(layer)}
    assert picture(subgraph) == expected


def test_violations_are_seen() -> None:
    layers: Layers = {"low": [], "middle": ["low"], "middle/inner": [], "high": ["middle"]}
    uses = {
        "low/a.cc": ["low/a.h", "middle/b.h"],
        "middle/b.cc": ["low/a.h", "middle/inner/c.h"],
        "middle/inner/c.cc": ["middle/b.h", "elsewhere.h"],
        "high/d.cc": ["low/a.h", "middle/b.h", "high/d.h"],
        "other/e.cc": [],
    }
    assert violations(uses, layers) == [
        "other/e.cc: in no layer",
        "low/a.cc: may not use middle/b.h",
        "middle/b.cc: may not use middle/inner/c.h",
        "middle/inner/c.cc: may not use middle/b.h",
        "middle/inner/c.cc: may not use elsewhere.h",
    ]


def test_nobody_imports_what_a_module_keeps_to_itself() -> None:
    for file in modules(PACKAGE):
        last = [name.rpartition(".")[2] for name in imported_by(file)]
        assert [name for name in last if name.startswith("_")] == [], file


def test_a_rule_imports_no_other_rule() -> None:
    rules = PACKAGE / "rules"
    for file in modules(rules):
        if file != rules / "__init__.py":
            assert [name for name in imported_by(file) if name.startswith("litebnn.rules")] == [], file


def test_a_rule_names_no_builtin_op_that_models_are_not_checked_for() -> None:
    """The validation of models skips kinds of ops that are not in its table. A rule for such an op could read inputs
    that do not exist."""
    builtins = {name for name in vars(schema.BuiltinOperator) if name.isupper()}
    checked = {name for name, facts in FACTS.items() if facts.most}
    assert len(checked) > 40
    for file in modules(PACKAGE / "rules"):
        constants = {node.value for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, ast.Constant)}
        assert constants & builtins <= checked, file


def test_only_the_flatbuffer_folder_knows_the_schema() -> None:
    camel_case = {field for field in fields_of_the_schema() if re.search("[a-z0-9][A-Z]", field)}
    assert "strideH" in camel_case
    for file in modules(PACKAGE):
        if PACKAGE / "flatbuffer" in file.parents:
            continue
        names = [node.attr for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, ast.Attribute)]
        assert camel_case.isdisjoint(names), file
        assert [name for name in imported_by(file) if name.startswith("litebnn.flatbuffer.schema")] == [], file


def fields_of_the_schema() -> set[str]:
    """The names of all fields in the classes that are generated from the schema."""
    kinds = [kind for kind in vars(schema).values() if isinstance(kind, type) and hasattr(kind, "Pack")]
    return {field for kind in kinds for field in vars(kind())}
