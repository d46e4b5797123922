"""Nights: what each run has of each trial, as one value a measure, from the history or from records."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from rnnbench.history import NIGHT_ROWS, History, RunEntry, entry_of
from rnnbench.results import COMPARED_PATHS, Record, Run, row, wrong_dates
from rnnbench.spelling import count, first_few

Array = npt.NDArray[np.float64]
FIGURES = ("build_s", "artifact_bytes", "memory_run_peak", "memory_build_peak")
"""Columns of the flat row that a night has beside its latencies."""
BUILD_FIGURES = ("build_s", "memory_build_peak")
"""Columns that are not measured in a run if an earlier run built the program."""
TEXTS = (
    *("trial", "case", "backend", "route", "model", "time", "state", "launch"),
    *("chunk", "steps", "lengths", "seed", "batch", "dtype", "device"),
)
QUANTITIES = ("median", "low", "high")
"""Of a latency in a night: the median, and the ends of its interval."""
_PATH_COLUMNS = ("process_medians", *(f"{name}_s" for name in QUANTITIES))
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


class Setting(NamedTuple):
    """What of a trial's measurement may differ from run to run, and decides what it may be compared with."""

    origin: str
    math: str
    device: str
    """Which device of its kind, where a driver told."""
    node: str
    group: int
    """Sampling group of its workload: trials of one group were sampled in turn."""


class Identity(NamedTuple):
    """What of a trial does not differ from night to night."""

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

    @property
    def target(self) -> str:
        return f"{self.backend}:{self.route}"


class NightTrial(NamedTuple):
    """What a run says of a trial, but for its figures."""

    identity: Identity
    outcome: str
    believed: bool
    same_as: str
    versions: str
    software: str
    """Of the machine: Python, kernel and system."""
    setting: Setting

    @property
    def name(self) -> str:
        return self.identity.trial


class PathFigures(NamedTuple):
    """A latency of one trial in one run, in seconds per call."""

    medians: Sequence[float]
    """The median of each process."""
    median: float
    low: float | None
    high: float | None


class NightRow(NamedTuple):
    """A trial in one run, as it is read."""

    trial: NightTrial
    figures: Sequence[float | None]
    """In the order of FIGURES."""
    latencies: Sequence[PathFigures | None]
    """In the order of COMPARED_PATHS."""


@dataclass(frozen=True, eq=False)
class Night:
    """One run. Its figures are arrays: a history may have a million rows. What is not measured is NaN."""

    entry: RunEntry
    trials: tuple[NightTrial, ...]
    """In the order of their names. Trials that are equal in several nights are one object."""
    figures: Array
    """[trials, FIGURES]"""
    latencies: Array
    """[trials, COMPARED_PATHS, QUANTITIES] in seconds per call."""
    _medians: Array
    """The medians of the processes of all trials and paths, one after another."""
    _ends: npt.NDArray[np.uint32]
    """[trials * COMPARED_PATHS + 1]: where those of each begin."""

    @classmethod
    def of(cls, entry: RunEntry, rows: Iterable[NightRow], known: dict[NightTrial, NightTrial]) -> Night:
        """The night that has these rows. `known` keeps the trials of all nights, each once."""
        ordered = sorted(rows, key=lambda row: row.trial.name)
        paths = [path for row in ordered for path in row.latencies]
        medians = [(path.medians or (path.median,)) if path else () for path in paths]
        quantities = [path[1:] if path else (None,) * len(QUANTITIES) for path in paths]
        return cls(
            entry,
            tuple(known.setdefault(row.trial, row.trial) for row in ordered),
            np.array([row.figures for row in ordered], float).reshape(-1, len(FIGURES)),
            np.array(quantities, float).reshape(-1, len(COMPARED_PATHS), len(QUANTITIES)),
            np.array([value for of_path in medians for value in of_path], float),
            np.cumsum([0, *map(len, medians)], dtype=np.uint32),
        )

    def processes(self, place: int) -> list[list[float]]:
        """The medians of the processes of one trial by path. Where only the median of all calls is known, that one."""
        first = place * len(COMPARED_PATHS)
        ends = self._ends[first : first + len(COMPARED_PATHS) + 1].tolist()
        return [self._medians[a:b].tolist() for a, b in pairwise(ends)]

    @property
    def versions(self) -> dict[str, str]:
        """Versions of the packages by backend."""
        return {trial.identity.backend: trial.versions for trial in self.trials if trial.versions}


@dataclass(frozen=True, eq=False)
class TrialSeries:
    """What the nights have of one trial on one machine, oldest first."""

    nights: tuple[int, ...]
    """Numbers of its nights among all."""
    trials: tuple[NightTrial, ...]
    figures: Array
    """[nights, FIGURES]"""
    latencies: Array
    """[nights, COMPARED_PATHS, QUANTITIES] in seconds per call."""

    @property
    def timed(self) -> TrialSeries:
        """Without the nights that have none of its latencies."""
        kept = np.flatnonzero(np.isfinite(self.latencies[:, :, 0]).any(axis=1))
        return TrialSeries(
            tuple(self.nights[place] for place in kept),
            tuple(self.trials[place] for place in kept),
            self.figures[kept],
            self.latencies[kept],
        )


class AllSeries:
    """The series of every trial of some nights."""

    def __init__(self, nights: Sequence[Night]) -> None:
        self._nights = nights
        self._places: dict[tuple[str, str], list[tuple[int, int]]] = {}
        for number, night in enumerate(nights):
            for place, trial in enumerate(night.trials):
                self._places.setdefault((night.entry.machine, trial.name), []).append((number, place))

    def of(self, machine: str, trial: str) -> TrialSeries:
        """That of one trial on one machine. It is empty where no night has it."""
        places = self._places.get((machine, trial), ())
        rows = [(self._nights[number], place) for number, place in places]
        return TrialSeries(
            tuple(number for number, _ in places),
            tuple(night.trials[place] for night, place in rows),
            np.array([night.figures[place] for night, place in rows]).reshape(-1, len(FIGURES)),
            np.array([night.latencies[place] for night, place in rows]).reshape(
                -1, len(COMPARED_PATHS), len(QUANTITIES)
            ),
        )


def nights_of(history: History | None, runs: Sequence[Run]) -> tuple[Night, ...]:
    """Oldest first: every run of the history, and the given runs that it does not have.

    A night that a wrong clock dated is left out, unless all are: its place among the others is not known.
    """
    known: dict[NightTrial, NightTrial] = {}
    nights = list(_stored(history, known)) if history else []
    run_ids = {night.entry.run_id for night in nights}
    nights += [night for run in runs if (night := _night(run, known)).entry.run_id not in run_ids]
    wrong = wrong_dates(night.entry.started for night in nights)
    dated = [night for night in nights if night.entry.started not in wrong]
    return tuple(sorted(dated, key=lambda night: (night.entry.started, night.entry.run_id)))


def _stored(history: History, known: dict[NightTrial, NightTrial]) -> Iterator[Night]:
    entries = {entry.run_id: entry for entry in history.nights}
    if not entries:
        return
    columns = (f"{path}_{column}" for path in COMPARED_PATHS for column in _PATH_COLUMNS)
    latencies = ", ".join(f"CASE WHEN device_software IS NOT TRUE THEN {column} END" for column in columns)
    measured = (
        f"CASE WHEN isfinite({name}){_BUILT_THEN if name in BUILD_FIGURES else ''} THEN {name} END" for name in FIGURES
    )
    software = ", ".join(f"trim('{word} ' || {column})" for word, column in _SOFTWARE.items())
    # Without ORDER BY: a night's rows are in one file, and no more than a batch is in memory twice.
    statement = (
        f"SELECT run_id, {', '.join(_quoted(TEXTS))}, threads, outcome, coalesce(believed, true), "
        f"coalesce(same_as, ''), coalesce(versions, ''), concat_ws(', ', {software}), {_SETTING}, "
        f"{', '.join(measured)}, {latencies} "
        f"FROM {NIGHT_ROWS} WHERE {_IS_WHOLE}"
    )
    for identity, rows in groupby(history.stream(statement), key=itemgetter(0)):
        if entry := entries.pop(identity, None):
            yield Night.of(entry, map(_stored_row, rows), known)
    yield from (Night.of(entry, (), known) for entry in entries.values())


def _stored_row(found: Sequence[Any]) -> NightRow:
    facts_at = 1 + len(Identity._fields)
    setting_at = facts_at + len(NightTrial._fields) - 2
    figures_at = setting_at + len(Setting._fields)
    paths_at = figures_at + len(FIGURES)
    identity, setting = Identity._make(found[1:facts_at]), Setting._make(found[setting_at:figures_at])
    trial = NightTrial._make((identity, *found[facts_at:setting_at], setting))
    return NightRow(trial, found[figures_at:paths_at], tuple(_path_figures(found[paths_at:])))


def rows_left_out(history: History) -> tuple[str, ...]:
    """The runs of which the history has damaged rows, which are in no night: a sentence each for the first of them."""
    statement = f"SELECT run, run_id, count(*) FROM rows WHERE NOT ({_IS_WHOLE}) GROUP BY ALL ORDER BY ALL"
    damaged = tuple(
        f"{run}: {count(rows, 'row')} of the history without {', '.join(_COUNTS[:-1])} or {_COUNTS[-1]}, left out of "
        f"its night; delete runs/{run_id}.json of the history, and add the run again"
        for run, run_id, rows in (history.sql(statement).rows if history.runs else ())
    )
    return first_few(damaged, lambda more: f"{count(more, 'more run')} with damaged rows of the history")


def _quoted(columns: Sequence[str]) -> list[str]:
    """`case` is a word of SQL. Rows of earlier versions have no launch: it was a stream."""
    return ["coalesce(launch, 'stream')" if column == "launch" else f'"{column}"' for column in columns]


def _path_figures(values: Sequence[Any]) -> Iterator[PathFigures | None]:
    width = len(_PATH_COLUMNS)
    for start in range(0, len(values), width):
        medians, median, low, high = values[start : start + width]
        yield None if median is None else PathFigures(medians or (), median, low, high)


def _night(run: Run, known: dict[NightTrial, NightTrial]) -> Night:
    return Night.of(entry_of(run, rows_sha256=""), (_row(record, run) for record in run.records), known)


def _row(record: Record, run: Run) -> NightRow:
    flat = row(record, run.info)
    latencies: list[PathFigures | None] = []
    for path in COMPARED_PATHS:
        latency = None if record.on_software_device else record.latency(path)
        low, high = (latency.interval if latency else None) or (None, None)
        latencies.append(PathFigures(latency.process_medians, latency.median, low, high) if latency else None)
    artifact, common = record.artifact, record.common_trial
    setting = Setting(
        artifact.origin if artifact else "",
        artifact.math if artifact else "",
        record.device_model,
        record.node,
        common.group if common else 0,
    )
    measured: dict[str, Any] = {**flat, **(dict.fromkeys(BUILD_FIGURES) if record.timing.built else {})}
    software = ", ".join(f"{word} {flat[column]}".strip() for word, column in _SOFTWARE.items() if flat[column])
    trial = NightTrial(
        Identity._make((*(flat[name] for name in TEXTS), record.params.threads)),
        record.outcome,
        not record.not_believed,
        record.same_as or "",
        str(flat["versions"] or ""),
        software,
        setting,
    )
    return NightRow(trial, [measured[name] for name in FIGURES], latencies)
