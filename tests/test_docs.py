"""Tests that what documents name exists (paths, links, tasks, modules), and that their generated parts are fresh."""

import importlib.util
import re
from pathlib import Path

import pytest
from invoke.collection import Collection

import tasks
from docs.generated import PART, generated, parts
from tests.support.documents import DOCUMENTS, anchors, commands, exists, links, modules, named_paths, read, sources
from toolchains.fetch.lock import find
from toolchains.targets import ROOT, read_toml

SOURCES = sorted(sources())
TASKS = Collection.from_module(tasks)


def of(path: Path) -> str:
    """The path of a file in the project."""
    return str(path.relative_to(ROOT))


def test_paths_that_are_named_exist() -> None:
    named = {of(path): [name for name in named_paths(read(path)) if not exists(name)] for path in SOURCES}
    assert {path: missing for path, missing in named.items() if missing} == {}


def test_tasks_and_flags_that_are_named_exist() -> None:
    for path in SOURCES:
        for name, flags in commands(read(path), path in DOCUMENTS):
            assert name in TASKS.task_names, f"{of(path)}: there is no task {name}"
            known = {f"--{word.replace('_', '-')}" for each in TASKS[name].get_arguments() for word in each.names}
            assert set(flags) <= known, f"{of(path)}: the task {name} has no such flag"


def test_modules_that_are_named_exist() -> None:
    named = {module: of(path) for path in SOURCES for module in modules(read(path)) if not module.isupper()}
    assert {path for module, path in named.items() if importlib.util.find_spec(module) is None} == set()


def test_links_lead_somewhere() -> None:
    for path in DOCUMENTS:
        for file, heading in links(read(path)):
            target = path.parent / file if file else path
            assert target.exists(), f"{of(path)}: {file}"
            assert not heading or heading in anchors(read(target)), f"{of(path)}: {file}#{heading}"


def test_every_document_is_linked_from_the_readme() -> None:
    linked = {file for file, _ in links(read("README.md"))}
    assert {of(path) for path in DOCUMENTS} - {"README.md"} <= linked


@pytest.mark.parametrize("document", [of(path) for path in DOCUMENTS])
def test_generated_parts_are_fresh(document: str) -> None:
    assert generated(read(document)) == read(document), "run `invoke docs --generate`"


def test_every_generated_part_is_in_a_document() -> None:
    assert {found["name"] for path in DOCUMENTS for found in PART.finditer(read(path))} == parts().keys()


@pytest.mark.parametrize("program", ["label_image", "benchmark_model", "run_model"])
def test_flags_of_the_programs(program: str) -> None:
    """The programs' manual pages are made from docs/programs.md."""
    section = read("docs/programs.md").split(f"\n## {program}\n")[1].split("\n## ")[0]
    documented = re.findall(r"^\| `--(\w+)`(?:, `-(\w)`)? \|", section, re.MULTILINE)
    source = read("examples/label_image/label_image.cc" if program == "label_image" else f"programs/{program}.cc")
    known = re.findall(r"^ +\{\"(\w+)\", (?:0|'(\w)'), ", source, re.MULTILINE)
    assert sorted(documented) == sorted(known)


def test_the_extras_compiler_is_the_locked_one() -> None:
    extras = read_toml(ROOT / "pyproject.toml")["project"]["optional-dependencies"]
    assert extras["cross"] == [find("ziglang").requirement]
