"""The report as one HTML page that needs no network: figures, layers, graph and broken rules."""

from litebnn.report.page.figures import Steps, Times
from litebnn.report.page.page import report_page

__all__ = ["Steps", "Times", "report_page"]
