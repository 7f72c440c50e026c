"""Output of commands: tables for people, JSON for programs."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterable, Sequence
from typing import Any

from litebnn.cli.streams import as_shown
from litebnn.errors import printable

# The width, in letters, of a table that is not printed on a terminal. Programs read such a table line by line, so rows
# are never folded.
_WIDTH_OF_A_FILE = 10_000
# The number of spaces between two columns, and the minimum width in letters to which a column of words can shrink.
_GAP, _LEAST_WIDTH = 2, 9


def print_json(found: Any) -> None:
    """Prints a command's result as standard JSON, in which numbers that are not finite are null."""
    print(json.dumps(_finite(found), indent=2, allow_nan=False))


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {str(key): _finite(each) for key, each in value.items()}
    return [_finite(each) for each in value] if isinstance(value, list | tuple) else value


def print_table(columns: Sequence[str], rows: Iterable[Sequence[str]], numbers: Iterable[str] = ()) -> None:
    """Prints a table, folded to the terminal's width. If the terminal is too narrow, prints each row as a list.

    Args:
        columns: the column names.
        rows: the rows of cells.
        numbers: the columns that are aligned right. Their names may be folded, but not their cells.
    """
    from rich.cells import cell_len
    from rich.console import Console
    from rich.table import Table

    # Widths are computed after encoding, because a letter that stdout's encoding lacks is replaced by text that may be
    # longer.
    shown, ranged_right = [[as_shown(printable(cell)) for cell in row] for row in rows], set(numbers)
    width = None if sys.stdout.isatty() else _WIDTH_OF_A_FILE
    console = Console(width=width, markup=False, emoji=False, highlight=False)
    table, whole, least = Table(box=None, pad_edge=False), -_GAP, -_GAP
    for name, *cells in zip(columns, *shown, strict=True):
        longest = max(map(cell_len, cells), default=0)
        whole += _GAP + max(longest, cell_len(name))
        if name in ranged_right:
            table.add_column(name, justify="right", no_wrap=True)
            least += _GAP + max(longest, *map(cell_len, name.split()))
        else:
            table.add_column(name, overflow="fold")
            least += _GAP + min(max(longest, cell_len(name)), _LEAST_WIDTH)
    for row in shown:
        table.add_row(*row)
    if least > console.width:
        for row in shown:
            print("; ".join(f"{name} {cell}" for name, cell in zip(columns, row, strict=True) if cell))
        return
    for column in table.columns if whole > console.width else ():
        column.header = str(column.header).replace(" ", "\n") if column.no_wrap else column.header
    console.print(table)
