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
    from rnnbench.reports.cache import print_cache
    from rnnbench.reports.commands import Commands
    from rnnbench.reports.comparison import print_comparison
    from rnnbench.reports.comparison_page import COMMENT_CHARACTERS, comparison_markdown
    from rnnbench.reports.conformance_matrix import conformance_table
    from rnnbench.reports.conformance_summary import print_conformance
    from rnnbench.reports.device_state import device_facts
    from rnnbench.reports.devices import device_names
    from rnnbench.reports.doctor import print_fitness
    from rnnbench.reports.errors import ReportError
    from rnnbench.reports.escape import grid, line, print_grid, show
    from rnnbench.reports.expected_failures import expected_failures_table
    from rnnbench.reports.findings import (
        findings_table,
        machine_table,
        not_believed_table,
        run_table,
        too_short_table,
        version_table,
    )
    from rnnbench.reports.model_file import print_description, print_state_check
    from rnnbench.reports.night import BackendLine, NightSummary, alert_issue, night_json, night_page
    from rnnbench.reports.operations_by_stage import draw_operations
    from rnnbench.reports.plots import draw_latency
    from rnnbench.reports.releases import RELEASE_LEGEND, release_tables, write_release_page
    from rnnbench.reports.reliability import reliability_sentences
    from rnnbench.reports.shards import print_shards
    from rnnbench.reports.support_matrix import print_support_matrix
    from rnnbench.reports.tables import EMULATED, P99_SAMPLES, Table, print_table, program, strategy
    from rnnbench.reports.terminal import print_summary
    from rnnbench.reports.triage import triage_page
    from rnnbench.reports.units import (
        change_with_interval,
        digits,
        drift_until,
        multiple,
        nbytes,
        percent,
        ratio,
        seconds,
    )
    from rnnbench.reports.write import write_comparison, write_page, write_report

__getattr__, __all__ = lazy_names(__name__, __file__)
