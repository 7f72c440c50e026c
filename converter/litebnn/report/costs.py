"""What ops cost on each board: a table of cycles, from which times are estimated.

`costs.json` is written by `python -m bench.costs` and has a row for each board and, for this machine, for each
instruction set (ISA). A row says how many cycles each kind of op takes for what it counts (`workload.py`); a time is
their sum.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from litebnn.contract import LCE_BCONV_2D
from litebnn.graph import Op
from litebnn.report.workload import Workload, windows_share_little, workload_of

FILE = Path(__file__).with_name("costs.json")
HOST = "host"
_CPUS = Path("/proc/cpuinfo")


@dataclass(frozen=True)
class Costs:
    """A row of the table.

    Attributes:
        board: "rpi3", "rpi4", "rpi5" or "host".
        description: the board in words.
        isa: litebnn's instruction set there.
        needs: words that the system says of a CPU that the row is for, all of them.
        ghz: the clock that the cycles are of.
        source: where the figures come from.
        error: the largest share by which a network's estimate was off what was measured; None where nothing was.
        tile: output channels that LceBconv2d computes together.
        tables: output channels whose lookups take as long as a table; layers that share less are left to `without`.
        shared_tables: tables for each tile that windows beside each other share, where they share any.
        without: the row of the ISA that computes such layers; None where there are none.
        cycles: by kind of op, what one of each amount takes.
    """

    board: str
    description: str
    isa: str
    needs: tuple[str, ...]
    ghz: float
    source: str
    error: float | None
    tile: int
    tables: int
    shared_tables: int
    without: Costs | None
    cycles: Mapping[str, Mapping[str, float]]

    def seconds(self, work: Workload) -> float | None:
        """The time of an op's work, None where nothing is known of its kind."""
        terms = self.cycles.get(work.kind)
        if terms is None:
            return None
        return sum(terms.get(name, 0.0) * amount for name, amount in work.amounts.items()) / (self.ghz * 1e9)


def estimate(op: Op, costs: Costs, delegated: Collection[Op], adds: bool) -> float | None:
    """Seconds of an op on a board, None where nothing is known of its kind."""
    row = row_for(op, costs)
    work = workload_of(op, delegated, adds, row.tile)
    return None if work is None else row.seconds(work)


def row_for(op: Op, costs: Costs) -> Costs:
    """The row of the ISA that computes an op: another than the board's where the layer does not suit that."""
    if costs.without is None or op.name != LCE_BCONV_2D:
        return costs
    is_left = windows_share_little(op, costs.tables, costs.shared_tables, costs.tile)
    return costs.without if is_left else costs


def boards() -> tuple[Costs, ...]:
    """This machine, and each other board, a row for each."""
    others: dict[str, Costs] = {}
    for row in _table():
        if row.board != HOST:
            others.setdefault(row.board, row)
    return (host_costs(_table(), _words_of_cpu()), *others.values())


def tiles() -> dict[str, int]:
    """How many output channels each instruction set computes together."""
    return {row.isa: row.tile for row in _table()}


def host_costs(table: Iterable[Costs], words: Collection[str]) -> Costs:
    """The first row that is for a CPU of which the system says these words, under the name of this machine.

    Where there is none, as on a CPU that no row knows, it is the slowest: the last of this machine's own rows.
    """
    rows = list(table)
    fitting = (row for row in rows if set(row.needs) <= set(words) and (row.needs or row.board == HOST))
    return next(fitting, [row for row in rows if row.board == HOST][-1])


def read_costs(content: str) -> tuple[Costs, ...]:
    """The rows of the table as a file has them, where `without` is the name of an ISA in a row below, or ""."""
    rows: list[Costs] = []
    for row in reversed(json.loads(content)):
        below = (other for other in rows if (other.board, other.isa) == (row["board"], row["without"]))
        rows.insert(0, Costs(**{**row, "needs": tuple(row["needs"]), "without": next(below, None)}))
    return tuple(rows)


def write_costs(rows: Iterable[Costs]) -> str:
    """The inverse of `read_costs`."""
    written = [{**vars(row), "without": "" if row.without is None else row.without.isa} for row in rows]
    return json.dumps(written, indent=1) + "\n"


@cache
def _table() -> tuple[Costs, ...]:
    return read_costs(FILE.read_text(encoding="utf-8"))


@cache
def _words_of_cpu() -> frozenset[str]:
    try:
        return frozenset(_CPUS.read_text(encoding="utf-8", errors="replace").split())
    except OSError:
        return frozenset()
