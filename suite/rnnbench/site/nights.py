"""Nights: what each run has of each trial, as one value a measure, from the history or from records."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, groupby, pairwise
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from rnnbench.history import NIGHT_ROWS, History, RunEntry, entry_of
from rnnbench.results import COMPARED_PATHS, Latency, Record, Run, row, wrong_dates
from rnnbench.spelling import count, first_few

Array = npt.NDArray[np.float64]
Rows = Sequence[Sequence[Any]]
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
    _ends: npt.NDArray[np.intp]
    """[trials * COMPARED_PATHS + 1]: where those of each begin."""

    @classmethod
    def of(cls, entry: RunEntry, trials: Sequence[NightTrial], figures: Rows, latencies: Rows, medians: Rows) -> Night:
        """`latencies` are by trial the QUANTITIES of each path, one after another; `medians` those of the processes."""
        paths = list(chain.from_iterable(medians))
        return cls(
            entry,
            tuple(trials),
            np.array(figures, float).reshape(-1, len(FIGURES)),
            np.array(latencies, float).reshape(-1, len(COMPARED_PATHS), len(QUANTITIES)),
            np.array(list(chain.from_iterable(paths)), float),
            np.cumsum([0, *map(len, paths)], dtype=np.intp),
        )

    @property
    def processes(self) -> list[list[Array]]:
        """By trial and path, the geometric mean of the processes' medians, and these; nothing where it has none.

        Where only the median of all calls is known, it is that of a process. No mean is of a time that is not above 0.
        """
        sizes = np.diff(self._ends)
        measured = sizes > 0
        starts = self._ends[:-1][measured]
        with np.errstate(divide="ignore", invalid="ignore"):
            means = np.exp(np.add.reduceat(np.log(self._medians), starts) / sizes[measured])
        values = np.insert(self._medians, starts, means)
        of_paths = [values[a:b] for a, b in pairwise(np.cumsum([0, *(sizes + measured)]).tolist())]
        width = len(COMPARED_PATHS)
        return [of_paths[first : first + width] for first in range(0, len(of_paths), width)]

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
    medians = (f"{path}_process_medians" for path in COMPARED_PATHS)
    latencies = (f"{path}_{quantity}_s" for path in COMPARED_PATHS for quantity in QUANTITIES)
    on_devices = [f"CASE WHEN device_software IS NOT TRUE THEN {name} END" for name in (*latencies, *medians)]
    measured = (
        f"CASE WHEN isfinite({name}){_BUILT_THEN if name in BUILD_FIGURES else ''} THEN {name} END" for name in FIGURES
    )
    software = ", ".join(f"trim('{word} ' || {column})" for word, column in _SOFTWARE.items())
    # Without ORDER BY: a night's rows are in one file, and no more than a batch is in memory twice.
    statement = (
        f"SELECT run_id, {', '.join(_quoted(TEXTS))}, threads, outcome, coalesce(believed, true), "
        f"coalesce(same_as, ''), coalesce(versions, ''), concat_ws(', ', {software}), {_SETTING}, "
        f"{', '.join((*measured, *on_devices))} "
        f"FROM {NIGHT_ROWS} WHERE {_IS_WHOLE}"
    )
    figures_at = 1 + len(Identity._fields) + len(NightTrial._fields) - 2 + len(Setting._fields)
    latencies_at = figures_at + len(FIGURES)
    medians_at = latencies_at + len(COMPARED_PATHS) * len(QUANTITIES)
    known: dict[tuple[Any, ...], NightTrial] = {}
    for run_id, group in groupby(history.stream(statement), key=itemgetter(0)):
        if entry := entries.pop(run_id, None):
            rows = sorted(group, key=itemgetter(1))
            yield Night.of(
                entry,
                [known.get(key := row[1:figures_at]) or known.setdefault(key, _stored_trial(key)) for row in rows],
                [row[figures_at:latencies_at] for row in rows],
                [row[latencies_at:medians_at] for row in rows],
                [_medians(row[latencies_at : medians_at : len(QUANTITIES)], row[medians_at:]) for row in rows],
            )
    yield from (Night.of(entry, (), (), (), ()) for entry in entries.values())


def _stored_trial(values: tuple[Any, ...]) -> NightTrial:
    identity, setting = len(Identity._fields), len(Setting._fields)
    facts = values[identity:-setting]
    return NightTrial._make((Identity._make(values[:identity]), *facts, Setting._make(values[-setting:])))


def _medians(medians: Sequence[float | None], processes: Sequence[Sequence[float] | None]) -> list[Sequence[float]]:
    """The medians of the processes by path, from those of all calls where they are not known."""
    return [() if median is None else of_path or (median,) for median, of_path in zip(medians, processes, strict=True)]


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


def _night(run: Run) -> Night:
    records = sorted(run.records, key=lambda record: record.trial)
    rows = [row(record, run.info) for record in records]
    latencies = [[_latency(record, path) for path in COMPARED_PATHS] for record in records]
    return Night.of(
        entry_of(run, rows_sha256=""),
        [_trial(record, flat) for record, flat in zip(records, rows, strict=True)],
        [_figures(record, flat) for record, flat in zip(records, rows, strict=True)],
        [[value for latency in paths for value in _quantities(latency)] for paths in latencies],
        [[latency.process_medians or (latency.median,) if latency else () for latency in paths] for paths in latencies],
    )


def _latency(record: Record, path: str) -> Latency | None:
    return None if record.on_software_device else record.latency(path)


def _quantities(latency: Latency | None) -> tuple[float | None, ...]:
    if latency is None:
        return (None,) * len(QUANTITIES)
    return (latency.median, *(latency.interval or (None, None)))


def _figures(record: Record, flat: Mapping[str, Any]) -> list[float | None]:
    return [None if record.timing.built and name in BUILD_FIGURES else flat[name] for name in FIGURES]


def _trial(record: Record, flat: Mapping[str, Any]) -> NightTrial:
    artifact, common = record.artifact, record.common_trial
    setting = Setting(
        artifact.origin if artifact else "",
        artifact.math if artifact else "",
        record.device_model,
        record.node,
        common.group if common else 0,
    )
    return NightTrial(
        Identity._make((*(flat[name] for name in TEXTS), record.params.threads)),
        record.outcome,
        not record.not_believed,
        record.same_as or "",
        str(flat["versions"] or ""),
        ", ".join(f"{word} {flat[column]}".strip() for word, column in _SOFTWARE.items() if flat[column]),
        setting,
    )
