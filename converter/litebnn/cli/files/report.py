"""The option `--report`: an HTML page about the model, in addition to the command's printed output."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from litebnn.cli.parsing import file_path

if TYPE_CHECKING:
    from litebnn.report.conversion import ConversionReport
    from litebnn.report.inspection import Inspection
    from litebnn.report.page import Steps, Times


def add_report(parser: argparse.ArgumentParser) -> None:
    """Adds the option `--report` to a command."""
    parser.add_argument(
        "--report",
        type=file_path,
        metavar="FILE.html",
        help="write a page with figures, layers and graph of the model (needs litebnn[report])",
    )


def check_report(report: Path | None, *others: Path | None) -> None:
    """Raises an error before any work is done if the report cannot be written.

    `report` is the path of the future report; None for no report. `others` are files of the command, which the report
    may not replace; None for a file that is not given.

    Raises:
        ImportError: Jinja2, which makes the page, is not installed.
        ValueError: the path is one of the other files, cannot be written, or does not end in .html or .htm.
    """
    if report is None:
        return
    import litebnn.report.page  # noqa: F401, fails where Jinja2 is missing
    from litebnn.files import check_destination, check_suffix

    check_destination(report, ".html", *others)
    check_suffix("--report", report, ".html", ".htm")


def page_of(
    inspection: Inspection,
    conversion: ConversionReport | None = None,
    measured: Sequence[Times] = (),
    steps: Steps | None = None,
) -> bytes:
    """The report as the content of an HTML file.

    `inspection` has the model's ops and their costs. `conversion` is the report of the conversion that made the model,
    if there was one. `measured` has measured times of the ops. `steps` is the table of steps on a microcontroller, if
    the options ask for one.
    """
    from litebnn.errors import boundary
    from litebnn.report.page import report_page

    with boundary():
        return report_page(inspection, conversion, measured, steps).encode("utf-8")
