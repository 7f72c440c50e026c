"""Rules and ISAs are where their tables say, and tests name what they need by its row in the table."""

import re
from pathlib import Path

import pytest

from litebnn.rules.phases import BINARY_PHASES, FINAL_PHASES, PHASES
from tests.support.documents import FOLDERS, read
from toolchains.needs import needs
from toolchains.targets import ROOT

FOLDERS_OF_RULES = sorted(path.name for path in (ROOT / "converter/litebnn/rules").iterdir() if path.is_dir())


@pytest.mark.parametrize("name", [name for name in FOLDERS_OF_RULES if not name.startswith("_") and name != "build"])
def test_a_folder_holds_rules_of_the_order_each_with_its_test(name: str) -> None:
    package = f"litebnn.rules.{name}"
    rules = [row[0] if isinstance(row, tuple) else row for rows in PHASES.values() for row in rows]
    assert all(one.__module__.endswith(f".{one.__name__}") for one in rules)
    here = {one.__name__ for one in rules if one.__module__.startswith(f"{package}.")}
    folder = ROOT / "converter" / Path(*package.split("."))
    files = {path.stem for path in folder.glob("*.py")} - {"__init__"}
    tests = {stem for stem in files if stem.endswith("_test")}
    assert files - tests == here
    assert {f"{name}_test" for name in here} <= tests
    assert [test for test in tests if not any(test.startswith(name) for name in here)] == []


def test_marks_name_rows_of_the_table() -> None:
    files = [path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py")]
    tests = [
        path.read_text(encoding="utf-8") for path in files if path.stem.startswith("test_") or "_test" in path.stem
    ]
    calls = [words for text in tests for words in re.findall(r"\bneeds?\(((?:\"[\w+-]+\"(?:, )?)+)\)", text)]
    named = {name for words in calls for name in re.findall(r"\"([\w+-]+)\"", words)}
    assert len(named) > 20
    assert named - set(needs()) == set()


def test_the_table_of_phases_is_the_order() -> None:
    assert tuple(PHASES)[:-1] == BINARY_PHASES + FINAL_PHASES


def test_every_isa_can_be_chosen() -> None:
    declared = re.findall(r"^extern const Isa (k\w+Isa);$", read("ops/kernels/isa/isa.h"), re.MULTILINE)
    chosen = re.findall(r"&(k\w+Isa),", read("ops/kernels/isa/select.cc"))
    assert len(declared) > 4
    assert sorted(chosen) == sorted(declared)
