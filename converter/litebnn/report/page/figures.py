"""The numbers and charts of the page: times, and the cost of each broken rule for models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from litebnn.report.inspection import BrokenRule, Inspection, OpRow
from litebnn.report.page.drawing import OTHER, PRECISIONS, precision_of
from litebnn.report.units import amount, share

if TYPE_CHECKING:
    from litebnn.report.conversion import ConversionReport


@dataclass(frozen=True)
class Times:
    """The time of each op on one board."""

    board: str  # its short name, such as "rpi4"
    description: str  # of the board, for people
    how: str  # "estimated" or "measured"
    source: str  # how the times were measured or estimated
    seconds: Mapping[int, float]  # the known times, by the op's index
    runtime_seconds: float = 0.0  # spent by the runtime between the ops

    @property
    def total(self) -> float:
        return sum(self.seconds.values()) + self.runtime_seconds


@dataclass(frozen=True)
class Steps:
    """The table of the steps of the exported C program for a microcontroller, as text. A step is an op, or several ops
    that run together."""

    title: str
    header: Sequence[str]
    numbers: Sequence[str]  # the columns that hold numbers
    # The cells of the table, row by row. Each row describes one step of the exported program.
    rows: Sequence[Sequence[str]]
    total: str  # the line below the table


@dataclass(frozen=True)
class PrecisionShare:
    """The part of a total that belongs to ops of one precision. `share` is a number from 0 to 1."""

    precision: str
    share: float
    text: str


@dataclass(frozen=True)
class Metric:
    """A quantity of each op that a chart shows."""

    name: str
    # The ops' times on one board, if the chart shows times; None if it shows MACs or bytes, which no board changes.
    times: Times | None
    total: str
    largest: str
    values: tuple[float, ...]
    # For each op, its value (such as its time) relative to the largest op's, and its value as text.
    cells: tuple[tuple[float, str], ...]
    # For each precision that occurs, the part of the metric's total that belongs to ops of this precision.
    precisions: tuple[PrecisionShare, ...]


@dataclass(frozen=True)
class RuleBroken:
    """A rule for models that run fast, and the layers of the inspected model that break it."""

    fix: str  # the advice, as one sentence
    costs: str  # total of all layers that break the rule
    # For each description of what breaks the rule, such as a number of channels, the indices of the layers for which it
    # is true.
    layers: dict[str, list[int]]


def precisions_in(inspection: Inspection) -> list[str]:
    """The precisions that occur in a model, for the legend."""
    found = {precision_of(row) for row in inspection.ops}
    return [precision for precision in (*PRECISIONS, OTHER) if precision in found]


def estimated_times(inspection: Inspection) -> list[Times]:
    """The estimated or measured times for each board."""
    found = []
    for board in inspection.boards:
        off = "" if board.error is None else f"; a network was off by {share(board.error, 1)} at most"
        description = f"{board.description}, {board.isa}" if board.isa else board.description
        seconds = {row.index: row.seconds[board.name] for row in inspection.ops if board.name in row.seconds}
        found.append(Times(board.name, description, "estimated", board.source + off, seconds))
    return found


def metrics(rows: Sequence[OpRow], all_times: Sequence[Times]) -> list[Metric]:
    """The quantities of the charts: times, multiply-accumulates, and bytes of constants."""
    by_time = [_metric(rows, "Time", "s", [times.seconds.get(row.index) for row in rows], times) for times in all_times]
    macs = _metric(rows, "MACs", "", [sum(row.macs) for row in rows])
    return [*by_time, macs, _metric(rows, "Weights", "B", [row.weight_bytes for row in rows])]


def _metric(
    rows: Sequence[OpRow], name: str, unit: str, found: Sequence[float | None], times: Times | None = None
) -> Metric:
    values = [value or 0.0 for value in found]
    total, largest = sum(values), max(values, default=0)
    by_precision = dict.fromkeys((*PRECISIONS, OTHER), 0.0)
    for row, value in zip(rows, values, strict=True):
        by_precision[precision_of(row)] += value
    return Metric(
        name=name,
        times=times,
        total=amount(total, unit),
        largest=amount(largest, unit),
        values=tuple(values),
        cells=tuple(((value or 0) / (largest or 1), _cell(value, unit)) for value in found),
        precisions=tuple(
            PrecisionShare(precision, value / total, share(value, total))
            for precision, value in by_precision.items()
            if value
        ),
    )


def _cell(value: float | None, unit: str) -> str:
    return "?" if value is None else amount(value, unit) if value else "–"


def broken_rules(inspection: Inspection, estimated: Sequence[Times]) -> list[RuleBroken]:
    """Each broken rule once, with all layers that break it, sorted by cost, highest first."""
    alike: dict[tuple[str, str], list[BrokenRule]] = {}
    for rule in inspection.broken_rules:
        alike.setdefault((rule.rule, rule.fix), []).append(rule)
    groups = [([_sum(rules, times) for times in estimated], rules) for rules in alike.values()]
    return [
        _rule_broken(rules, estimated, costs) for costs, rules in sorted(groups, key=lambda each: each[0], reverse=True)
    ]


def _sum(rules: Sequence[BrokenRule], times: Times) -> float:
    return sum(rule.seconds.get(times.board, 0.0) for rule in rules)


def _rule_broken(rules: Sequence[BrokenRule], estimated: Sequence[Times], costs: Sequence[float]) -> RuleBroken:
    layers: dict[str, list[int]] = {}
    for rule in sorted(rules, key=lambda rule: rule.index):
        layers.setdefault(rule.found, []).append(rule.index)
    words = [
        f"{amount(cost, 's')} on {times.board} ({share(cost, times.total)})"
        for cost, times in zip(costs, estimated, strict=True)
    ]
    return RuleBroken(rules[0].fix, ", ".join(words), layers)


def to_know(conversion: ConversionReport) -> list[str]:
    """The notes of a conversion that the page shows neither with the layers nor with the rules."""
    verified = [] if conversion.verification is None else conversion.verification.lines()
    return [*conversion.noted, *verified]
