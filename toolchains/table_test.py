import subprocess
import sys

import pytest
from rich.console import Console

from toolchains.table import COLUMNS, table
from toolchains.targets import ROOT, load_targets


def test_every_target_has_a_row() -> None:
    console = Console(width=200)
    with console.capture() as capture:
        console.print(table())
    lines = capture.get().splitlines()
    for target in load_targets().values():
        row = next(line for line in lines if line.startswith(f"│ {target.name} "))
        assert target.triple in row
        assert target.glibc in row


def test_a_narrow_terminal_shows_every_character(capsys: pytest.CaptureFixture[str]) -> None:
    console = Console(width=80)
    with console.capture() as capture:
        console.print(table())
    assert "…" not in capture.get()


def test_a_pipe_gets_whole_lines() -> None:
    command = [sys.executable, "-m", "toolchains.table"]
    lines = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()
    assert all(column in lines[1] for column in COLUMNS)
    for target in load_targets().values():
        assert any(target.description in line and target.triple in line for line in lines)
