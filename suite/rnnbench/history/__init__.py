"""The history: rows of many runs, and what changed from one to the next.

    store, entry, columns, database      `History`: runs are added once, rows are kept in Parquet, and queried by SQL
    measures, series                     what is watched as a number, and its series: a value a run, anchors divided out
    change_points                        where the level of a series changed
    changes, events                      `find_changes` and `find_events`: what changed, when, by how much, in words
    release_file, releases, release_words   backfills: the releases of a package in the order of their versions
    settings, text, words                `settings.yaml`; tables and sentences as plain text

The package reads `rnnbench.results` and knows no pipeline. DuckDB comes with the extra `history`.
"""

from typing import TYPE_CHECKING

from rnnbench.lazy import lazy_names

if TYPE_CHECKING:
    from rnnbench.history.change_points import PUBLISH, SCREEN, Settings
    from rnnbench.history.changes import Change, find_changes
    from rnnbench.history.database import Table
    from rnnbench.history.entry import RunEntry
    from rnnbench.history.events import Event, find_events
    from rnnbench.history.release_file import ReleaseFile, ReleaseInfo, write_release
    from rnnbench.history.release_words import RELEASE_LEGEND, release_change_lines, release_tables
    from rnnbench.history.releases import ReleaseSeries, release_changes, release_series
    from rnnbench.history.settings import HistorySettings, read_settings
    from rnnbench.history.store import Addition, History
    from rnnbench.history.text import csv_lines, plain_table
    from rnnbench.history.words import change_lines, event_lines

_NAMES = {
    "change_points": (
        "PUBLISH",
        "SCREEN",
        "Settings",
    ),
    "changes": (
        "Change",
        "find_changes",
    ),
    "database": ("Table",),
    "entry": ("RunEntry",),
    "events": (
        "Event",
        "find_events",
    ),
    "release_file": (
        "ReleaseFile",
        "ReleaseInfo",
        "write_release",
    ),
    "release_words": (
        "RELEASE_LEGEND",
        "release_change_lines",
        "release_tables",
    ),
    "releases": (
        "ReleaseSeries",
        "release_changes",
        "release_series",
    ),
    "settings": (
        "HistorySettings",
        "read_settings",
    ),
    "store": (
        "Addition",
        "History",
    ),
    "text": (
        "csv_lines",
        "plain_table",
    ),
    "words": (
        "change_lines",
        "event_lines",
    ),
}
__all__ = [
    "PUBLISH",
    "RELEASE_LEGEND",
    "SCREEN",
    "Addition",
    "Change",
    "Event",
    "History",
    "HistorySettings",
    "ReleaseFile",
    "ReleaseInfo",
    "ReleaseSeries",
    "RunEntry",
    "Settings",
    "Table",
    "change_lines",
    "csv_lines",
    "event_lines",
    "find_changes",
    "find_events",
    "plain_table",
    "read_settings",
    "release_change_lines",
    "release_changes",
    "release_series",
    "release_tables",
    "write_release",
]
__getattr__ = lazy_names(__name__, _NAMES)
