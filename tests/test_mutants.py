"""Tests that the lines that `invoke mutants` changes or leaves out exist in the code."""

import pytest

from mutants import cpp, python
from toolchains.targets import ROOT, read_toml


@pytest.mark.parametrize("file", cpp.FILES)
def test_a_mutant_is_one_line_that_is_another(file: str) -> None:
    lines = (ROOT / file).read_text(encoding="utf-8").splitlines()
    mutants = list(cpp.mutants_of(file))
    assert mutants
    assert all(mutant.before == lines[mutant.line - 1] != mutant.after for mutant in mutants)


def test_what_is_named_as_equivalent_is_still_there() -> None:
    for row in read_toml(ROOT / "mutants" / "equivalent.toml")["mutant"]:
        lines = (ROOT / row["file"]).read_text(encoding="utf-8").splitlines()
        assert row["before"] in map(str.strip, lines), row
        assert row["before"] != row["after"]
        assert row["why"]


CODE = """
@cache
def halves(x):
    if x % 2:
        return [
            y // 2 for y in x
        ]
    return 1
"""


@pytest.mark.parametrize(
    ("line", "lines"), [(3, range(3, 4)), (4, range(4, 5)), (6, range(5, 8)), (8, range(8, 9)), (2, range(2, 3))]
)
def test_a_line_is_run_where_its_statement_is(line: int, lines: range) -> None:
    assert python.statement_lines(CODE, line) == lines


def test_tests_beside_a_file_are_tried_first_and_then_the_quickest() -> None:
    seconds = {"a/b_test.py::one": 3.0, "a/b_test.py::two": 2.0, "c.py::three": 1.0, "c.py::four": 90.0}
    run = ["a/b_test.py::one", "c.py::three", "c.py::four"]
    lines = {"1": [""], "2": list(seconds), "3": run[1:2], "4": run}
    recording = python.Recording({"a/b.py": lines}, seconds)
    next_to_first = ["a/b_test.py::two", "a/b_test.py::one", "c.py::three"]
    assert recording.tests_of("a/b.py", range(2, 3)) == next_to_first
    assert recording.tests_of("a/b.py", range(3, 4)) == ["c.py::three"]
    assert recording.tests_of("a/b.py", range(4, 5)) == run[:2]
    assert recording.tests_of("a/b.py", range(1, 2)) == next_to_first
    assert recording.tests_of("a/b.py", range(9, 10)) == []
