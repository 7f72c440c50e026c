"""The option `--report`: a page about the model beside what a command prints."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from litebnn.cli.parsing import file_path

if TYPE_CHECKING:
    from litebnn.report.conversion import ConversionReport
    from litebnn.report.inspection import Inspection
    from litebnn.report.page import Times


def add_report(parser: argparse.ArgumentParser) -> None:
    """Adds the option."""
    parser.add_argument(
        "--report",
        type=file_path,
        metavar="FILE.html",
        help="write a page with figures, layers and graph of the model (needs litebnn[report])",
    )


def check_report(report: Path | None, *others: Path | None) -> None:
    """Says before any work that a report cannot be written.

    Args:
        report: where it is to be; None for no report.
        others: files of the command, which the report may not replace; None for one that is not given.

    Raises:
        ImportError: what makes the page is not installed.
        ValueError: the path is that of another of the files, or none that a file could have.
    """
    if report is None:
        return
    import litebnn.report.page  # noqa: F401, fails where Jinja2 is missing
    from litebnn.model_files import check_destination

    check_destination(report, ".html", *others)


def page_of(
    inspection: Inspection, conversion: ConversionReport | None = None, measured: Sequence[Times] = ()
) -> bytes:
    """The page's file.

    Args:
        inspection: what the model consists of.
        conversion: what made it, where it was converted.
        measured: times of its ops.
    """
    from litebnn.errors import boundary
    from litebnn.report.page import report_page

    with boundary():
        return report_page(inspection, conversion, measured).encode("utf-8")
