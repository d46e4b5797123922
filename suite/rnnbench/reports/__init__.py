"""Reports: tables, pictures and pages, made from results.

`write_report` writes a run's page with its pictures, `print_summary` is the end of `rnnbench run`, `print_conformance`
that of `rnnbench check`; `print_comparison` and `write_comparison` show two runs. Start reading at `markdown.py`, the
order of a page; `tables.py` has what all tables share. Reports read `rnnbench.results` and the declarations of latency
paths and metrics, and know neither pipeline nor backends.
"""

from rnnbench.reports.comparison import comparison_markdown, print_comparison
from rnnbench.reports.conformance_summary import print_conformance
from rnnbench.reports.plots import ReportError, draw_latency
from rnnbench.reports.terminal import print_summary
from rnnbench.reports.trust import trust
from rnnbench.reports.units import count, multiple
from rnnbench.reports.write import write_comparison, write_report

__all__ = [
    "ReportError",
    "comparison_markdown",
    "count",
    "draw_latency",
    "multiple",
    "print_comparison",
    "print_conformance",
    "print_summary",
    "trust",
    "write_comparison",
    "write_report",
]
