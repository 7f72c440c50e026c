"""Runs commands of `litebnn` in this process."""

from pathlib import Path

import pytest

from litebnn import cli


def refused(capsys: pytest.CaptureFixture[str], *words: str | Path) -> str:
    """Runs a command that must fail, with one line on stderr and nothing on stdout. Returns the line."""
    capsys.readouterr()
    try:
        code = cli.main([str(word) for word in words])
    except SystemExit as ended:
        code = ended.code  # type: ignore[assignment]
    printed = capsys.readouterr()
    assert (code, printed.out) == (1, "")
    [line] = printed.err.splitlines()
    return line
