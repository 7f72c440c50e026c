"""The report as one HTML page that needs no network: figures, layers, graph and broken guidelines of a model, and
the conversion report if there is one.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

try:
    import jinja2
    from markupsafe import Markup, escape
except ImportError as error:
    raise ImportError("an HTML report needs Jinja2: pip install 'litebnn[report]'") from error

from litebnn import __version__
from litebnn.errors import printable
from litebnn.report.conversion import reasons
from litebnn.report.inspection import Inspection
from litebnn.report.page.drawing import drawing, precision_of
from litebnn.report.page.figures import Steps, Times, broken_rules, estimated_times, metrics, precisions_in, to_know
from litebnn.report.tables import delegation
from litebnn.report.units import amount, shape_text, share

if TYPE_CHECKING:
    from litebnn.report.conversion import ConversionReport

__all__ = ["Steps", "Times", "report_page"]

_FOLDER = Path(__file__).parent
_SCRIPTS = ("vendor/dagre.min.js", "vendor/panzoom.min.js", "page.js")


def report_page(
    inspection: Inspection,
    conversion: ConversionReport | None = None,
    measured: Sequence[Times] = (),
    steps: Steps | None = None,
) -> str:
    """One self-contained HTML page about a model.

    `inspection` has the model's ops and their costs. `conversion` is the report of the conversion, if there was one.
    `measured` has measured times, which the page shows before estimated ones. `steps` is the table of steps on a
    microcontroller, if there is one.

    Returns:
        The page. It loads nothing and allows no script but its own.

    Example:
        >>> from litebnn.report.inspection import inspect_model
        >>> page = report_page(inspect_model("binary.tflite"))
        >>> page.split()[:2]
        ['<!DOCTYPE', 'html>']
        >>> Path("report.html").write_text(page, encoding="utf-8") == len(page)
        True
    """
    estimated = estimated_times(inspection)
    all_times = [*measured, *estimated]
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
            delegation=delegation,
            conversion=conversion,
            all_times=all_times,
            steps=steps,
            broken_rules=broken_rules(inspection, estimated),
            legend=precisions_in(inspection),
            metrics=metrics(inspection.ops, all_times),
            precision_of=precision_of,
            share=share,
            reasons=reasons,
            to_know=to_know,
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
    environment.filters |= {"amount": amount, "printable": printable, "shape": shape_text}
    environment.filters |= {"breakable": _breakable, "marked": _marked}
    return environment


def _breakable(name: str) -> str:
    """A name as HTML, with possible line breaks between its parts."""
    return Markup(re.sub(r"[/_;:.]", r"\g<0><wbr>", str(escape(printable(name)))))


def _marked(text: str) -> str:
    """Text as HTML, with text in backticks as code."""
    return Markup(re.sub(r"`([^`]+)`", r"<code>\1</code>", str(escape(printable(text)))))


def _script(name: str) -> str:
    """The text of a script without the sourceMappingURL comment, which would make developer tools request a file."""
    return re.sub(r"^//# sourceMappingURL=.*$", "", (_FOLDER / name).read_text(encoding="utf-8"), flags=re.MULTILINE)


def _policy(script: str) -> str:
    """The content security policy: the browser may run this script and load nothing."""
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    sources = ("default-src 'none'", "style-src 'unsafe-inline'", "img-src data:", f"script-src 'sha256-{digest}'")
    return "; ".join([*sources, "base-uri 'none'", "form-action 'none'"])
