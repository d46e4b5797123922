"""Nights: what each run has of each trial, as one value a measure, from the history or from records."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from rnnbench.history import History, RunEntry, entry_of
from rnnbench.results import COMPARED_PATHS, Record, Run, row, wrong_dates
from rnnbench.spelling import count

FIGURES = ("build_s", "artifact_bytes", "memory_run_peak", "memory_build_peak")
"""Columns of the flat row that a night has beside its latencies."""
BUILD_FIGURES = ("build_s", "memory_build_peak")
"""Columns that are not measured in a run if an earlier run built the program."""
TEXTS = (
    *("trial", "case", "backend", "route", "model", "time", "state", "launch"),
    *("chunk", "steps", "lengths", "seed", "batch", "dtype", "device"),
)
IDENTITY = len(TEXTS) + 1
"""Fields of a row of a night that say which trial it is: TEXTS and `threads`."""
_PATH_COLUMNS = ("process_medians", "median_s", "low_s", "high_s")
_SETTING = (
    "coalesce(origin, ''), coalesce(math, ''), CASE WHEN device_driver IS NULL THEN '' "
    "ELSE concat(device_name, ' (', device_capability, ')') END, coalesce(node, ''), "
    "CAST(coalesce(anchor_group, 0) AS INTEGER)"
)
"""The fields of a Setting, in SQL."""
_BUILT_THEN = " AND coalesce(built, '') = ''"
_COUNTS = ("chunk", "steps", "batch", "threads")
"""Columns that every trial has. A row without one was damaged before its digest was made."""
_IS_WHOLE = " AND ".join(f"{column} IS NOT NULL" for column in _COUNTS)
_SOFTWARE = {"Python": "machine_python", "kernel": "machine_kernel", "": "machine_system"}
"""Columns of what an update of the machine changes, with the words before them."""


class PathFigures(NamedTuple):
    """A latency of one trial in one run, in seconds per call."""

    medians: tuple[float, ...]
    """The median of each process."""
    median: float
    low: float | None
    high: float | None


class Setting(NamedTuple):
    """What of a trial's measurement may differ from run to run, and decides what it may be compared with."""

    origin: str
    math: str
    device: str
    """Which device of its kind, where a driver told."""
    node: str
    group: int
    """Sampling group of its workload: trials of one group were sampled in turn."""


class NightRow(NamedTuple):
    """A trial in one run."""

    trial: str
    case: str
    backend: str
    route: str
    model: str
    """JSON."""
    time: str
    state: str
    launch: str
    chunk: int
    steps: int
    lengths: str
    seed: int
    batch: int
    dtype: str
    device: str
    threads: int
    outcome: str
    believed: bool
    same_as: str
    versions: str
    software: str
    """Of the machine: Python, kernel and system."""
    setting: Setting
    figures: tuple[float | None, ...]
    """In the order of FIGURES."""
    latencies: tuple[PathFigures | None, ...]
    """In the order of COMPARED_PATHS."""

    @property
    def identity(self) -> tuple[object, ...]:
        """What does not differ from night to night: the fields up to `threads`."""
        return self[:IDENTITY]

    @property
    def target(self) -> str:
        return f"{self.backend}:{self.route}"


@dataclass(frozen=True)
class Night:
    """One run."""

    entry: RunEntry
    rows: tuple[NightRow, ...]

    @property
    def versions(self) -> dict[str, str]:
        """Versions of the packages by backend."""
        return {row.backend: row.versions for row in self.rows if row.versions}


def nights_of(history: History | None, runs: Sequence[Run]) -> tuple[Night, ...]:
    """Oldest first: every run of the history, and the given runs that it does not have.

    A night that a wrong clock dated is left out, unless all are: its place among the others is not known.
    """
    nights = list(_stored(history)) if history else []
    run_ids = {night.entry.run_id for night in nights}
    nights += [night for night in map(_night, runs) if night.entry.run_id not in run_ids]
    wrong = wrong_dates(night.entry.started for night in nights)
    dated = [night for night in nights if night.entry.started not in wrong]
    return tuple(sorted(dated, key=lambda night: (night.entry.started, night.entry.run_id)))


def _stored(history: History) -> Iterator[Night]:
    entries = {entry.run_id: entry for entry in history.nights}
    if not entries:
        return
    columns = (f"{path}_{column}" for path in COMPARED_PATHS for column in _PATH_COLUMNS)
    latencies = ", ".join(f"CASE WHEN device_software IS NOT TRUE THEN {column} END" for column in columns)
    measured = (
        f"CASE WHEN isfinite({name}){_BUILT_THEN if name in BUILD_FIGURES else ''} THEN {name} END" for name in FIGURES
    )
    software = ", ".join(f"trim('{word} ' || {column})" for word, column in _SOFTWARE.items())
    statement = (
        f"SELECT run_id, {', '.join(_quoted(TEXTS))}, threads, outcome, coalesce(believed, true), "
        f"coalesce(same_as, ''), coalesce(versions, ''), concat_ws(', ', {software}), {_SETTING}, "
        f"{', '.join(measured)}, {latencies} "
        f"FROM rows WHERE {_IS_WHOLE} ORDER BY run_id, trial"
    )
    setting_at = 1 + len(TEXTS) + 6
    first = setting_at + len(Setting._fields)
    paths_at = first + len(FIGURES)
    rows: dict[str, list[NightRow]] = {identity: [] for identity in entries}
    for found in history.sql(statement).rows:
        if found[0] in rows:  # A run of a backfill is no night.
            setting, figures = Setting._make(found[setting_at:first]), found[first:paths_at]
            paths = tuple(_path_figures(found[paths_at:]))
            rows[found[0]].append(NightRow._make((*found[1:setting_at], setting, figures, paths)))
    yield from (Night(entry, tuple(rows[identity])) for identity, entry in entries.items())


def rows_left_out(history: History) -> tuple[str, ...]:
    """A sentence for each run of which the history has damaged rows, which are in no night."""
    statement = f"SELECT run, run_id, count(*) FROM rows WHERE NOT ({_IS_WHOLE}) GROUP BY ALL ORDER BY ALL"
    return tuple(
        f"{run}: {count(rows, 'row')} of the history without {', '.join(_COUNTS[:-1])} or {_COUNTS[-1]}, left out of "
        f"its night; delete runs/{run_id}.json of the history, and add the run again"
        for run, run_id, rows in (history.sql(statement).rows if history.runs else ())
    )


def _quoted(columns: Sequence[str]) -> list[str]:
    """`case` is a word of SQL. Rows of earlier versions have no launch: it was a stream."""
    return ["coalesce(launch, 'stream')" if column == "launch" else f'"{column}"' for column in columns]


def _path_figures(values: Sequence[object]) -> Iterator[PathFigures | None]:
    width = len(_PATH_COLUMNS)
    for start in range(0, len(values), width):
        medians, median, low, high = values[start : start + width]
        yield None if median is None else PathFigures(tuple(medians or ()), median, low, high)  # type: ignore[arg-type]


def _night(run: Run) -> Night:
    rows = tuple(_row(record, run) for record in sorted(run.records, key=lambda record: record.trial))
    return Night(entry_of(run, rows_sha256=""), rows)


def _row(record: Record, run: Run) -> NightRow:
    flat = row(record, run.info)
    latencies = []
    for path in COMPARED_PATHS:
        latency = None if record.on_software_device else record.latency(path)
        low, high = (latency.interval if latency else None) or (None, None)
        latencies.append(latency and PathFigures(latency.process_medians, latency.median, low, high))
    facts = (record.params.threads, record.outcome, not record.not_believed, record.same_as or "")
    artifact, common = record.artifact, record.common_trial
    setting = Setting(
        artifact.origin if artifact else "",
        artifact.math if artifact else "",
        record.device_model,
        record.node,
        common.group if common else 0,
    )
    figures = tuple(None if record.timing.built and name in BUILD_FIGURES else flat[name] for name in FIGURES)
    software = ", ".join(f"{word} {flat[column]}".strip() for word, column in _SOFTWARE.items() if flat[column])
    texts = (str(flat["versions"] or ""), software)
    return NightRow._make((*(flat[name] for name in TEXTS), *facts, *texts, setting, figures, tuple(latencies)))
