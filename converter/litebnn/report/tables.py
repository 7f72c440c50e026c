"""An inspection as a table of text, and the lines below the table."""

from __future__ import annotations

from collections.abc import Sequence

from litebnn.errors import printable
from litebnn.report.conversion import ConversionReport, reasons
from litebnn.report.inspection import Board, BrokenRule, Inspection, OpRow
from litebnn.report.macs import Macs
from litebnn.report.units import amount, shape_text

_NAMES_OF_A_LINE = 4


def columns(inspection: Inspection) -> list[str]:
    """The header of the table of a model's ops. The first four and the last two columns hold words, all others
    numbers."""
    times = [f"{board.name} ms" for board in inspection.boards]
    return ["#", "layer", "op", "shape", "MACs", "weights B", "moved B", *times, "goes on", "fused"]


def rows(inspection: Inspection) -> list[list[str]]:
    """The rows of the table: one for each op, and one with totals."""
    total, missing = inspection.seconds, inspection.ops_without_seconds
    sums = ["> " * (missing[board.name] > 0) + _milliseconds(total[board.name]) for board in inspection.boards]
    sizes = [amount(inspection.weight_bytes), amount(inspection.activation_bytes)]
    last = ["", "all", "", "", _macs(inspection.macs), *sizes, *sums, "", ""]
    return [
        [printable(cell) for cell in row] for row in (*(_row(op, inspection.boards) for op in inspection.ops), last)
    ]


def _row(op: OpRow, boards: Sequence[Board]) -> list[str]:
    times = [_milliseconds(op.seconds[board.name]) if board.name in op.seconds else "?" for board in boards]
    fused = f"in #{op.fused_into}" if op.fused_into is not None else ", ".join(op.fused)
    window = f" {shape_text(op.filter_shape[:2])}" if len(op.filter_shape) > 1 else ""
    shape = f"{shape_text(op.input_shape[1:])}{window} → {shape_text(op.output_shape[1:])}"
    sizes = [amount(op.weight_bytes), amount(op.activation_bytes)]
    return [str(op.index), op.name, op.op, shape, _macs(op.macs), *sizes, *times, op.output, fused]


def notes(inspection: Inspection) -> list[str]:
    """Lines of text on the accuracy of the estimated times, and on ops without an estimate."""
    lines = [_board_line(board) for board in inspection.boards]
    lines += _without_times(inspection)
    lines += delegation(inspection)
    if inspection.other_ops:
        lines.append(f"{inspection.other_ops} ops of further subgraphs are left out")
    return [printable(line) for line in lines]


def delegation(inspection: Inspection) -> list[str]:
    """Lines of text on what the delegate runs, and why it leaves the other ops to the runtime."""
    if inspection.undelegated:
        missing = f"what the delegate runs is not known: {inspection.undelegated}"
        return [missing + "; the estimates take all ops but litebnn's own for the runtime's"]
    partitions = {row.partition for row in inspection.ops} - {None}
    taken = sum(row.partition is not None for row in inspection.ops)
    where = f"in {len(partitions)} partition{'s' * (len(partitions) != 1)}"
    lines = [f"the delegate runs {taken} of {len(inspection.ops)} ops, {where}"]
    left: dict[str, list[str]] = {}
    for row in inspection.ops:
        if row.left:
            left.setdefault(row.left, []).append(f"#{row.index} {row.op}")
    return lines + [f"left to the runtime, as {reason}: {_first(ops)}" for reason, ops in left.items()]


def _without_times(inspection: Inspection) -> list[str]:
    """Yields one line for each set of boards whose cost tables lack the same kinds of ops."""
    boards = [board.name for board in inspection.boards]
    ops_of: dict[tuple[str, ...], set[str]] = {}
    for row in inspection.ops:
        ops_of.setdefault(tuple(name for name in boards if name not in row.seconds), set()).add(row.op)
    lines = []
    for missing, ops in ops_of.items():
        if missing:
            where = "" if len(missing) == len(boards) else f" on {', '.join(missing)}"
            whose = "its time is" if len(ops) == 1 else "their times are"
            lines.append(f"nothing is known of {', '.join(sorted(ops))}{where}: {whose} missing in the sums")
    return lines


def advice(inspection: Inspection) -> list[str]:
    """A line for each op and each rule for fast models that the op breaks, worst first, with the cost on each board."""
    return [printable(f"#{rule.index} {rule.layer}: {_broken(rule)}") for rule in inspection.broken_rules]


def left_undone(conversion: ConversionReport) -> list[str]:
    """The reasons why layers of the source are not binary or not fused further, then the other notes."""
    lines = [
        f"{what}: {reason} ({_first(names)})"
        for what, layers in (
            ("not binary", [layer for layer in conversion.layers if not layer.binary]),
            ("could do more", [layer for layer in conversion.layers if layer.binary]),
        )
        for reason, names in reasons(layers).items()
    ]
    return [printable(line) for line in (*lines, *conversion.noted)]


def _first(names: Sequence[str]) -> str:
    others = len(names) - _NAMES_OF_A_LINE
    return ", ".join([*names[:_NAMES_OF_A_LINE], *([f"{others} others"] if others > 0 else [])])


def _broken(rule: BrokenRule) -> str:
    costs = ", ".join(f"{seconds * 1e3:.3f} ms on {board}" for board, seconds in rule.seconds.items())
    return f"{rule.found}: {rule.fix} ({costs})"


def _board_line(board: Board) -> str:
    if board.error is None:
        error = "nothing was measured there to hold it against"
    else:
        error = f"at most {board.error:.0%} off what larq-zoo's networks took"
    return f"{board.name}: {board.description}, one thread, {board.isa}; an estimate, {error} ({board.source})"


def _macs(macs: Macs) -> str:
    return " + ".join(f"{amount(count)} {name}" for name, count in macs._asdict().items() if count)


def _milliseconds(seconds: float) -> str:
    return f"{seconds * 1e3:.3f}"
