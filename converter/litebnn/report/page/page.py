"""Makes the page from what was inspected, and where there was a conversion, from what that did."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

try:
    import jinja2
    from markupsafe import Markup, escape
except ImportError as error:
    raise ImportError("an HTML report needs Jinja2: pip install litebnn[report]") from error

from litebnn import __version__
from litebnn.errors import printable
from litebnn.report.anatomy import short_name
from litebnn.report.inspection import Board, BrokenRule, Inspection, OpRow
from litebnn.report.page.drawing import OTHER, PRECISIONS, drawing, precision_of
from litebnn.report.units import amount, shape_text, share

if TYPE_CHECKING:
    from litebnn.report.conversion import ConversionReport

_FOLDER = Path(__file__).parent
_SCRIPTS = ("vendor/dagre.min.js", "vendor/panzoom.min.js", "page.js")


@dataclass(frozen=True)
class Part:
    """What ops of one precision have of a whole; `share` is 0 to 1."""

    precision: str
    share: float
    text: str


@dataclass(frozen=True)
class Metric:
    """What each op has of one thing, for a chart.

    Attributes:
        board: whose times these are; None for what is the same everywhere.
        cells: of each op, the share of the largest and what to print.
        parts: of each precision that has any.
    """

    name: str
    board: Board | None
    total: str
    largest: str
    values: tuple[float, ...]
    cells: tuple[tuple[float, str], ...]
    parts: tuple[Part, ...]


@dataclass(frozen=True)
class BrokenRuleOfLayers:
    """A rule that several layers break in the same way: what it costs on each board in all of them."""

    found: str
    fix: str
    rows: tuple[int, ...]
    seconds: dict[str, float]


def report_page(inspection: Inspection, conversion: ConversionReport | None = None) -> str:
    """One self-contained HTML page about a model.

    Args:
        inspection: what the model consists of and costs.
        conversion: what was done to it, where it was converted.

    Returns:
        The page, which loads nothing and allows no script but its own.

    Example:
        >>> page = report_page(inspect_model("binary.tflite"))  # doctest: +SKIP
        >>> Path("report.html").write_text(page, encoding="utf-8")  # doctest: +SKIP
    """
    script = "\n".join(_script(name) for name in _SCRIPTS)
    return (
        _environment()
        .get_template("page.html")
        .render(
            version=__version__,
            policy=_policy(script),
            script=script,
            style=(_FOLDER / "page.css").read_text(encoding="utf-8"),
            inspection=inspection,
            conversion=conversion,
            boards=inspection.boards,
            broken_rules=_broken_rules(inspection),
            legend=_legend(inspection),
            metrics=_metrics(inspection),
            precision_of=precision_of,
            share=share,
            kept=[] if conversion is None else _kept(conversion),
            layers=[row for row in inspection.ops if sum(row.macs)],
            graph=drawing(inspection),
        )
    )


@cache
def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_FOLDER),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"amount": amount, "breakable": _breakable, "printable": printable, "shape": shape_text}
    return environment


def _breakable(name: str) -> str:
    """A name as HTML that lines may be broken in where its parts end."""
    return Markup(re.sub(r"[/_;:.]", r"\g<0><wbr>", str(escape(printable(name)))))


def _script(name: str) -> str:
    """A script's text, without the comment by which developer tools would look for another file."""
    return re.sub(r"^//# sourceMappingURL=.*$", "", (_FOLDER / name).read_text(encoding="utf-8"), flags=re.MULTILINE)


def _policy(script: str) -> str:
    """What the browser may do: run this one script, and load nothing."""
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    sources = ("default-src 'none'", "style-src 'unsafe-inline'", "img-src data:", f"script-src 'sha256-{digest}'")
    return "; ".join([*sources, "base-uri 'none'", "form-action 'none'"])


def _legend(inspection: Inspection) -> list[str]:
    found = {precision_of(row) for row in inspection.ops}
    return [precision for precision in (*PRECISIONS, OTHER) if precision in found]


def _metrics(inspection: Inspection) -> list[Metric]:
    rows = inspection.ops
    times = [
        _metric(rows, "Time", "s", [row.seconds.get(board.name, 0.0) for row in rows], board)
        for board in inspection.boards
    ]
    macs = _metric(rows, "MACs", "", [sum(row.macs) for row in rows])
    return [*times, macs, _metric(rows, "Weights", "B", [row.weight_bytes for row in rows])]


def _metric(rows: Sequence[OpRow], name: str, unit: str, values: Sequence[float], board: Board | None = None) -> Metric:
    total, largest = sum(values), max(values, default=0)
    by_precision = dict.fromkeys((*PRECISIONS, OTHER), 0.0)
    for row, value in zip(rows, values, strict=True):
        by_precision[precision_of(row)] += value
    return Metric(
        name=name,
        board=board,
        total=amount(total, unit),
        largest=amount(largest, unit),
        values=tuple(values),
        cells=tuple((value / largest if largest else 0, amount(value, unit) if value else "–") for value in values),
        parts=tuple(
            Part(precision, value / total, share(value, total)) for precision, value in by_precision.items() if value
        ),
    )


def _broken_rules(inspection: Inspection) -> list[BrokenRuleOfLayers]:
    """What is found in several layers stands there once, with all of them."""
    alike: dict[tuple[str, str], list[BrokenRule]] = {}
    for rule in inspection.broken_rules:
        alike.setdefault((rule.found, rule.fix), []).append(rule)
    names = [board.name for board in inspection.boards]
    groups = [
        BrokenRuleOfLayers(
            found=found,
            fix=fix,
            rows=tuple(rule.index for rule in rules),
            seconds={name: sum(rule.seconds.get(name, 0.0) for rule in rules) for name in names},
        )
        for (found, fix), rules in alike.items()
    ]
    return sorted(groups, key=lambda group: -group.seconds[names[0]]) if names else groups


def _kept(conversion: ConversionReport) -> list[tuple[str, list[str]]]:
    """Why layers are not binary, each reason once with the names of its layers."""
    layers_of: dict[str, list[str]] = {}
    for layer in conversion.layers:
        for reason in () if layer.binary else layer.reasons:
            layers_of.setdefault(printable(reason), []).append(printable(short_name(layer.name)))
    return list(layers_of.items())
