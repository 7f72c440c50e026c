"""`invoke mutants`: what it changes is in the code, and so is what it leaves out."""

import pytest

from mutants import cpp
from toolchains.targets import ROOT, read_toml


@pytest.mark.parametrize("file", cpp.TESTS)
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
