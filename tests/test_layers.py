"""Dependencies point one way: what each part of the C++ library and of the Python package may know of the others."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
OPS = ROOT / "ops"
PACKAGE = ROOT / "converter" / "litebnn"

# A layer is a file or folder, without its suffix. It may know itself, the layers after its name, and what those may
# know. A file belongs to the innermost layer that it lies in.
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
    "unique_names": [],
    "contract": ["errors"],
    "graph": ["contract"],
    "flatbuffer": ["graph"],
    "rewriting": ["graph"],
    "passes": ["rewriting"],
    "frontends": ["flatbuffer", "unique_names"],
    "options": ["errors"],
    "runtime": ["flatbuffer", "unique_names"],
    "report": ["rewriting", "runtime"],
    "calibration": ["options", "passes", "runtime"],
    "convert": ["calibration", "frontends", "report"],
    "__init__": ["convert"],
    "cli": ["__init__"],
}


def layer_of(file: str, layers: Layers) -> str | None:
    """The layer that a file lies in.

    >>> layer_of("kernels/isa/isa.h", CPP_LAYERS)
    'kernels/isa'
    """
    path = Path(file).with_suffix("")
    return next((str(folder) for folder in (path, *path.parents) if str(folder) in layers), None)


def known_to(layer: str, layers: Layers) -> set[str]:
    """A layer and all that it may know."""
    return {layer}.union(*(known_to(below, layers) for below in layers[layer]))


def violations(uses: dict[str, list[str]], layers: Layers) -> list[str]:
    """What is wrong with files that use others, both named by their paths."""
    found = [f"{file}: in no layer" for file in uses if layer_of(file, layers) is None]
    for file, used in uses.items():
        layer = layer_of(file, layers)
        for other in used if layer else []:
            if layer_of(other, layers) not in known_to(str(layer), layers):
                found.append(f"{file}: may not use {other}")
    return found


def cpp_uses() -> dict[str, list[str]]:
    """What each C++ file of the library includes by a path from ops/, or from ops/include/."""
    uses = {}
    for folder in ("include", "kernels", "tflite"):
        for file in sorted((OPS / folder).rglob("*.[chS]*")):
            included = re.findall(r'^\s*#\s*include "([^"]+)"', file.read_text(encoding="utf-8"), re.M)
            public = [name if (OPS / name).exists() else f"include/{name}" for name in included]
            uses[file.relative_to(OPS).as_posix()] = public
    return uses


def imported_by(file: Path) -> Iterator[str]:
    """The modules of the package that a module imports, anywhere in it, as paths."""

    def path_of(module: str) -> str | None:
        path = PACKAGE.joinpath(*module.split(".")[1:])
        candidates = (path.with_suffix(".py"), path / "__init__.py")
        return next((str(one.relative_to(PACKAGE)) for one in candidates if one.is_file()), None)

    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            package = ["litebnn", *file.relative_to(PACKAGE).parent.parts]
            parent = package[: len(package) - node.level + 1] if node.level else []
            module = ".".join([*parent, *([node.module] if node.module else [])])
            names = [f"{module}.{alias.name}" for alias in node.names]
            names = [name if path_of(name) else module for name in names]
        else:
            continue
        for name in names:
            if name.split(".")[0] == "litebnn" and (path := path_of(name)):
                yield path


def python_uses() -> dict[str, list[str]]:
    """What each module of the package imports; the tests beside them may know anything."""
    files = [file for file in sorted(PACKAGE.rglob("*.py")) if not file.stem.endswith("_test")]
    return {str(file.relative_to(PACKAGE)): sorted(set(imported_by(file))) for file in files}


@pytest.mark.parametrize(("uses", "layers"), [(cpp_uses(), CPP_LAYERS), (python_uses(), PYTHON_LAYERS)])
def test_dependencies_point_one_way(uses: dict[str, list[str]], layers: Layers) -> None:
    assert violations(uses, layers) == []
    # The parsing saw something: every layer has a file, and most files use another.
    assert {layer_of(file, layers) for file in uses} == set(layers)
    assert sum(bool(used) for used in uses.values()) > len(uses) / 2


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
