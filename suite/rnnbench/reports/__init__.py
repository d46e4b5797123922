"""Reports: tables, pictures and pages, made from results.

`write_report` writes a run's page with its pictures, `print_summary` is the end of `rnnbench run`, `print_conformance`
that of `rnnbench check`; `print_comparison` and `write_comparison` show two runs; `triage_page` shows the alerts of a
history, `write_release_page` a backfill. Start reading at `markdown.py`, the order of a page; `tables.py` has what all
tables share. Reports read `rnnbench.results`, `rnnbench.history` and the declarations of latency paths and metrics, and
know neither pipeline nor backends.
"""

from typing import TYPE_CHECKING

from rnnbench.lazy import lazy_names

if TYPE_CHECKING:
    from rnnbench.reports.comparison import print_comparison
    from rnnbench.reports.comparison_page import COMMENT_CHARACTERS, comparison_markdown
    from rnnbench.reports.conformance_summary import print_conformance
    from rnnbench.reports.doctor import print_fitness
    from rnnbench.reports.escape import line
    from rnnbench.reports.plots import ReportError, draw_latency
    from rnnbench.reports.release_page import print_table, write_release_page
    from rnnbench.reports.reliability import reliability_sentences
    from rnnbench.reports.support_matrix import print_support_matrix
    from rnnbench.reports.tables import Table
    from rnnbench.reports.terminal import print_summary
    from rnnbench.reports.triage import triage_page
    from rnnbench.reports.units import count, multiple, seconds
    from rnnbench.reports.write import write_comparison, write_page, write_report

_NAMES = {
    "comparison": ("print_comparison",),
    "comparison_page": (
        "COMMENT_CHARACTERS",
        "comparison_markdown",
    ),
    "conformance_summary": ("print_conformance",),
    "doctor": ("print_fitness",),
    "escape": ("line",),
    "plots": (
        "ReportError",
        "draw_latency",
    ),
    "release_page": (
        "print_table",
        "write_release_page",
    ),
    "support_matrix": ("print_support_matrix",),
    "tables": ("Table",),
    "terminal": ("print_summary",),
    "reliability": ("reliability_sentences",),
    "triage": ("triage_page",),
    "units": (
        "count",
        "multiple",
        "seconds",
    ),
    "write": (
        "write_comparison",
        "write_page",
        "write_report",
    ),
}
__all__ = [
    "COMMENT_CHARACTERS",
    "ReportError",
    "Table",
    "comparison_markdown",
    "count",
    "draw_latency",
    "line",
    "multiple",
    "print_comparison",
    "print_conformance",
    "print_fitness",
    "print_summary",
    "print_support_matrix",
    "print_table",
    "reliability_sentences",
    "seconds",
    "triage_page",
    "write_comparison",
    "write_page",
    "write_release_page",
    "write_report",
]
__getattr__ = lazy_names(__name__, _NAMES)
