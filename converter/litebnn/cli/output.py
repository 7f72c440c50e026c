"""How commands print what they have found: as a table for people, as JSON for programs."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterable, Sequence
from typing import Any

from litebnn.errors import printable

# In a file, which programs read line by line, a row is never folded.
_WIDTH_OF_A_FILE = 10_000


def print_json(found: Any) -> None:
    """Prints what a command has found, as JSON that any reader takes: a number that is not finite is null."""
    print(json.dumps(_finite(found), indent=2, allow_nan=False))


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {str(key): _finite(each) for key, each in value.items()}
    return [_finite(each) for each in value] if isinstance(value, list | tuple) else value


def print_table(columns: Sequence[str], rows: Iterable[Sequence[str]], numbers: Iterable[str] = ()) -> None:
    """Prints a table, folded to the width of the terminal if there is one.

    Args:
        columns: the names at the top.
        rows: cells, a row of them for each line.
        numbers: the columns that are ranged right.
    """
    from rich.console import Console
    from rich.table import Table

    table, ranged_right = Table(box=None, pad_edge=False), set(numbers)
    for name in columns:
        table.add_column(name, justify="right" if name in ranged_right else "left", overflow="fold")
    for row in rows:
        table.add_row(*map(printable, row))
    width = None if sys.stdout.isatty() else _WIDTH_OF_A_FILE
    Console(width=width, markup=False, emoji=False, highlight=False).print(table)
