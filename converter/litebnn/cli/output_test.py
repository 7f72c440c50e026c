import io
import re
import sys

import pytest

from litebnn.cli.output import print_table
from litebnn.cli.streams import prepared

COLUMNS = ("layer", "peak MiB", "shape")
ROWS = [["stage_one/conv", "12.5", "8×8 → 4×4"], ["all", "7.25", ""]]


class Terminal(io.TextIOWrapper):
    """A fake terminal with a given encoding. The property `lines` omits the codes for bold text."""

    def __init__(self, encoding: str) -> None:
        super().__init__(io.BytesIO(), encoding=encoding)

    def isatty(self) -> bool:
        return True

    def lines(self) -> list[str]:
        self.flush()
        text = re.sub("\x1b\\[[0-9;]*m", "", self.buffer.getvalue().decode(self.encoding))
        return [line.rstrip() for line in text.splitlines()]


def printed(monkeypatch: pytest.MonkeyPatch, width: int, encoding: str = "utf-8") -> list[str]:
    monkeypatch.setenv("COLUMNS", str(width))
    monkeypatch.setenv("TERM", "xterm")
    terminal = Terminal(encoding)
    monkeypatch.setattr(sys, "stdout", terminal)
    with prepared():
        print_table(COLUMNS, ROWS, numbers=["peak MiB"])
    return terminal.lines()


def test_a_wide_terminal_folds_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    assert printed(monkeypatch, 80) == [
        "layer           peak MiB  shape",
        "stage_one/conv      12.5  8×8 → 4×4",
        "all                 7.25",
    ]


def test_a_narrower_one_folds_words_and_the_names_of_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = printed(monkeypatch, 30)
    assert lines[:2] == ["               peak", "layer           MiB  shape"]
    assert max(map(len, lines)) <= 30
    assert any("12.5" in line for line in lines)


def test_a_terminal_too_narrow_for_columns_has_a_line_for_each_row(monkeypatch: pytest.MonkeyPatch) -> None:
    assert printed(monkeypatch, 20) == [
        "layer stage_one/conv; peak MiB 12.5; shape 8×8 → 4×4",
        "layer all; peak MiB 7.25",
    ]


def test_signs_that_an_encoding_lacks_are_told_in_others(monkeypatch: pytest.MonkeyPatch) -> None:
    assert printed(monkeypatch, 80, "ascii")[1] == "stage_one/conv      12.5  8x8 -> 4x4"
    assert printed(monkeypatch, 80, "latin-1")[1] == "stage_one/conv      12.5  8×8 -> 4×4"
    monkeypatch.setattr(sys.modules[__name__], "ROWS", [["größe", "1", "·"]])
    assert printed(monkeypatch, 80, "ascii") == ["layer        peak MiB  shape", "gr\\xf6\\xdfe         1  -"]
