"""The cost of ops on each board: a table of cycles, from which times are estimated.

`python -m bench.costs` writes `costs.json`. It has a row for each board and, for this machine, for each instruction set
(ISA). For each kind of op, a row gives the cycles per unit of work, for example per multiply-add. `workload.py` counts
an op's units. To estimate the op's time, its units are multiplied by their cycles, added up, and divided by the clock
rate.
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
    """A row of the table of costs: the costs of ops on one board, or on all desktop computers whose CPU has one ISA."""

    board: str  # "rpi3", "rpi4", "rpi5" or "host"
    description: str  # for people
    isa: str  # that litebnn uses on the board
    # CPU features, as the operating system names them. The row applies to CPUs that have all of them.
    needs: tuple[str, ...]
    ghz: float  # clock rate at which the cycles were measured, in GHz
    source: str  # how the costs were measured or modelled
    error: float | None  # largest relative error of the estimated times of networks; None if no network was timed
    tile: int  # number of output channels that LceBconv2d computes together
    # Building one lookup table takes as long as the lookups of this number of output channels. If a layer uses each
    # table for fewer channels, the ISA in `without` computes the layer.
    tables: int
    # The largest number of lookup tables, per tile of channels, that are kept for adjacent windows; 0 if windows share
    # no tables.
    shared_tables: int
    # The row of another ISA, which computes the layers that would use each lookup table too rarely; None if there is no
    # such ISA.
    without: Costs | None
    # For each kind of op and each kind of its work, such as multiply-adds, the cycles for one unit of this work.
    cycles: Mapping[str, Mapping[str, float]]

    def seconds(self, work: Workload) -> float | None:
        """The time of an op's work in seconds; None if the table has no costs for this kind of op."""
        terms = self.cycles.get(work.kind)
        if terms is None:
            return None
        return sum(terms.get(name, 0.0) * amount for name, amount in work.amounts.items()) / (self.ghz * 1e9)


def estimate(op: Op, costs: Costs, delegated: Collection[Op], adds: bool) -> float | None:
    """The estimated time of an op on a board in seconds; None if the table has no costs for this kind of op."""
    row = row_for(op, costs)
    work = workload_of(op, delegated, adds, row.tile)
    return None if work is None else row.seconds(work)


def row_for(op: Op, costs: Costs) -> Costs:
    """The row of costs for the ISA that computes an op. The result is `costs`, or the row `costs.without` if the
    board's ISA leaves an LceBconv2d to another ISA."""
    if costs.without is None or op.name != LCE_BCONV_2D:
        return costs
    is_left = windows_share_little(op, costs.tables, costs.shared_tables, costs.tile)
    return costs.without if is_left else costs


def boards() -> tuple[Costs, ...]:
    """One row of the cost table for each board for which times are estimated: this machine and all other boards."""
    others: dict[str, Costs] = {}
    for row in _table():
        if row.board != HOST:
            others.setdefault(row.board, row)
    return (host_costs(_table(), _words_of_cpu()), *others.values())


def features_lacking() -> dict[str, list[str]]:
    """The CPU features that are missing on this CPU. Each key is an ISA, and its value names the features that this ISA
    needs and the CPU lacks.
    """
    words, rows = _words_of_cpu(), [row for row in _table() if row.board == HOST and row.needs]
    if not any(words.intersection(row.needs) for row in rows):
        return {}
    return {row.isa: [word for word in row.needs if word not in words] for row in rows}


def tiles() -> dict[str, int]:
    """For each instruction set, the number of output channels that it computes together."""
    return {row.isa: row.tile for row in _table()}


def host_costs(table: Iterable[Costs], words: Collection[str]) -> Costs:
    """Returns the first row of the cost table whose CPU features, or CPU part number, this CPU has. If no row fits,
    returns the last row of the board "host", which is for the slowest ISA.
    """
    rows = list(table)
    fitting = (row for row in rows if set(row.needs) <= set(words) and (row.needs or row.board == HOST))
    return next(fitting, [row for row in rows if row.board == HOST][-1])


def read_costs(content: str) -> tuple[Costs, ...]:
    """Parses the rows of `costs.json`. In a row of the file, `without` names the ISA to which the row's ISA leaves some
    layers; "" stands for none. The result has the row of that ISA in its place, a later row for the same board.
    """
    rows: list[Costs] = []
    for row in reversed(json.loads(content)):
        below = (other for other in rows if (other.board, other.isa) == (row["board"], row["without"]))
        rows.insert(0, Costs(**{**row, "needs": tuple(row["needs"]), "without": next(below, None)}))
    return tuple(rows)


def write_costs(rows: Iterable[Costs]) -> str:
    """Writes rows as the text that `read_costs` parses."""
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
