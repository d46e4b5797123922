"""Tables, plots and pages, made from results. What is named here is for other rooms."""

from rnnbench.reports.comparison import comparison_markdown, print_comparison
from rnnbench.reports.conformance import print_conformance
from rnnbench.reports.entries import ReportError, view
from rnnbench.reports.terminal import print_summary
from rnnbench.reports.trust import trust
from rnnbench.reports.units import count, multiple
from rnnbench.reports.write import write_comparison, write_report

__all__ = [
    "ReportError",
    "comparison_markdown",
    "count",
    "multiple",
    "print_comparison",
    "print_conformance",
    "print_summary",
    "trust",
    "view",
    "write_comparison",
    "write_report",
]
