"""The history: rows of many runs, and what changed from one to the next.

    store, entry, columns, database      `History`: runs are added once, rows are kept in Parquet, and queried by SQL
    measures, series                     what is watched as a number, and its series: a value a run, anchors divided out
    change_points, drift                 where the level of a series changed, suddenly or little by little
    causes                               whether the program or the machine changed it
    changes, events                      `find_changes` and `find_events`: what changed, when, by how much, in words
    alert, alerts_file, alerts           `Alerts`: bad news with a state, in a file that people edit
    level_alerts, fact_alerts, alert_update   `News` and `update`: what is new, what has returned
    checks                               what `rnnbench check` found of each version, and what changed
    comparisons, machine_alarms          verdicts of `rnnbench ab`; those of A/A comparisons, by machine
    release_file, releases, release_words   backfills: the releases of a package in the order of their versions
    settings                             `settings.yaml`
    table_text, change_words             tables and changes as plain text

The package reads `rnnbench.results` and knows no pipeline. DuckDB comes with the extra `history`.
"""

from typing import TYPE_CHECKING

from rnnbench.lazy import lazy_names

if TYPE_CHECKING:
    from rnnbench.history.alert import SILENCE, Acceptance, Alert, Detection, Measured, UpstreamReport, new_id
    from rnnbench.history.alert_update import News, update
    from rnnbench.history.alerts import Alerts
    from rnnbench.history.alerts_file import AlertsError
    from rnnbench.history.causes import NEAR
    from rnnbench.history.change_points import PUBLISH, SCREEN, ChangeCriteria
    from rnnbench.history.change_words import change_lines, event_lines, without_anchors
    from rnnbench.history.changes import Change, find_changes, told_by_backends
    from rnnbench.history.checks import CheckChange, CheckEntry, FailedTrial, check_changes, is_check
    from rnnbench.history.columns import NIGHT_ROWS, SERIES_DEVICE
    from rnnbench.history.comparisons import (
        VERDICTS_FILE,
        ComparisonEntry,
        LatencyVerdict,
        latency_verdict,
        side_b_of,
        side_of,
        slow_calls,
    )
    from rnnbench.history.database import Table, require_history
    from rnnbench.history.entry import RunEntry, entry_of, utc_of
    from rnnbench.history.events import Event, find_events
    from rnnbench.history.level_alerts import REST
    from rnnbench.history.machine_alarms import MachineAlarms, false_alarm_lines, false_alarms
    from rnnbench.history.measures import MEASURES, Measure
    from rnnbench.history.release_file import ReleaseFile, ReleaseInfo, write_release
    from rnnbench.history.release_words import release_change_lines
    from rnnbench.history.releases import (
        ReleasePoint,
        ReleaseSeries,
        ReleaseStep,
        release_changes,
        release_series,
        release_versions,
    )
    from rnnbench.history.series import machines_without_anchors
    from rnnbench.history.settings import HistorySettings, read_settings
    from rnnbench.history.store import Addition, History
    from rnnbench.history.table_text import csv_lines, plain_table

__getattr__, __all__ = lazy_names(__name__, __file__)
