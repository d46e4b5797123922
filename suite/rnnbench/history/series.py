"""Series of one machine: for each trial and measure a value a run, and what the anchors say of each run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from rnnbench.history.columns import NIGHT_ROWS, SERIES_DEVICE
from rnnbench.history.entry import RunEntry
from rnnbench.history.measures import MEASURES, Measure
from rnnbench.history.store import History
from rnnbench.results import COMPARED_PATHS, sql_literal

Array = npt.NDArray[np.float64]
LEAST_TRIALS = 3
"""Fewest trials of a series that is a median over trials, as a backend's is. One of two trials moves their median."""
POLISH_ROUNDS = 6
"""Rounds after which a common trend hardly changes any more."""


@dataclass(frozen=True)
class Trials:
    """The trials of one machine and what their rows say; every array is [trials, runs]."""

    runs: tuple[RunEntry, ...]
    """Oldest first."""
    names: tuple[str, ...]
    """A trial that ran on several devices, as on two GPUs, is there once for each."""
    backends: tuple[str, ...]
    is_anchor: npt.NDArray[np.bool_]
    """[trials]"""
    values: Mapping[str, Array]
    """Logarithms by measure; NaN where a run has no value, or none that is believed."""
    program: npt.NDArray[np.uint64]
    """A hash of digest and versions of the program; 0 where it was not measured."""
    versions: npt.NDArray[np.object_]
    """Versions of the backend's packages; None where it was not measured."""

    def part(self, first: int, end: int | None = None) -> Trials:
        """The same trials in some of the runs."""
        runs = slice(first, end)
        return replace(
            self,
            runs=self.runs[runs],
            values={name: values[:, runs] for name, values in self.values.items()},
            program=self.program[:, runs],
            versions=self.versions[:, runs],
        )

    def runs_between(self, members: Sequence[int], a: int, b: int) -> int:
        """Runs from one run to another in which any of these trials was measured; all runs, where there are none."""
        first, second = sorted((a, b))
        if not members:
            return second - first
        return int(np.count_nonzero(self.program[list(members), first + 1 : second + 1].any(axis=0)))

    @cached_property
    def _anchors(self) -> dict[str, Array]:
        """[runs]: the anchors' common trend by measure; NaN where a run has none."""
        return {path: common_trend(self._anchor_series(path)) for path in COMPARED_PATHS}

    def anchors(self, measure: Measure) -> Array | None:
        """[runs]: what the anchors say of the machine; None where no run has any, or the measure needs none."""
        trend = self._anchors[measure.anchored_by] if measure.anchored_by else None
        return trend if trend is not None and np.isfinite(trend).any() else None

    def divided(self, measure: Measure) -> Array:
        """[trials, runs]: the measure's values over the anchors'."""
        anchors = self.anchors(measure)
        values = self.values[measure.name]
        return values if anchors is None else values - anchors

    def backend_series(self, measure: Measure) -> dict[str, Array]:
        """[runs] by backend: the common trend of its trials, over the anchors'."""
        divided = self.divided(measure)
        members = {
            backend: [k for k in range(len(self.names)) if self.backends[k] == backend and not self.is_anchor[k]]
            for backend in sorted(set(self.backends))
        }
        measured = {b: [k for k in trials if np.isfinite(divided[k]).any()] for b, trials in members.items()}
        enough = {b: trials for b, trials in measured.items() if len({self.names[k] for k in trials}) >= LEAST_TRIALS}
        return {backend: common_trend(divided[trials]) for backend, trials in enough.items()}

    def _anchor_series(self, path: str) -> Array:
        """[series, runs]: an anchor with other versions is another anchor, since its level may be another one."""
        return np.array(
            [
                np.where(self.versions[k] == version, self.values[path][k], np.nan)
                for k in np.flatnonzero(self.is_anchor)
                for version in sorted({v for v in self.versions[k] if v is not None})
            ]
        ).reshape(-1, len(self.runs))


def common_trend(values: Array) -> Array:
    """[runs]: what series [series, runs] have in common, each with a level of its own: Tukey's median polish.

    A series that begins late, ends early or misses runs does not move it. NaN where a run has no value.
    """
    trend = np.zeros(values.shape[1])
    present = np.isfinite(values).any(axis=0)
    kept = values[np.isfinite(values).any(axis=1)]
    if not len(kept):
        return np.full_like(trend, np.nan)
    for _ in range(POLISH_ROUNDS):
        levels = np.nanmedian(kept - trend, axis=1, keepdims=True)
        trend[present] = np.nanmedian(kept[:, present] - levels, axis=0)
    return np.where(present, trend, np.nan)


def machines_without_anchors(history: History, anchors: Sequence[str] = ()) -> tuple[str, ...]:
    """Machines on which no baseline, no pinned anchor and none of the targets `anchors` was ever measured."""
    measured = history.sql(
        "SELECT machine, backend || ':' || route, coalesce(bool_or(baseline), false) OR bool_or(pinned IS NOT NULL) "
        f"FROM {NIGHT_ROWS} WHERE outcome IN ('ok', 'nonconforming') GROUP BY ALL"
    ).rows
    anchored = {machine for machine, target, is_baseline in measured if is_baseline or target in anchors}
    return tuple(sorted({machine for machine, _, _ in measured} - anchored))


def trials_of_machines(history: History, anchors: Sequence[str] = ()) -> Iterator[tuple[str, Trials]]:
    """Each machine's fingerprint with its trials. `anchors` names targets that are anchors too."""
    for machine in sorted({entry.machine for entry in history.nights}):
        yield machine, _trials(history, machine, anchors)


def _trials(history: History, machine: str, anchors: Sequence[str]) -> Trials:
    runs = tuple(entry for entry in history.nights if entry.machine == machine)
    number = {entry.run_id: index for index, entry in enumerate(runs)}
    columns = history.arrays(_select(machine))
    trials = _text(columns["trial"])
    _, first, trial = np.unique(trials + "\0" + _text(columns["series_device"]), return_index=True, return_inverse=True)
    run = np.array([number[identity] for identity in columns["run_id"]], dtype=np.intp)
    shape = (len(first), len(runs))
    is_anchor = np.zeros(len(first), dtype=bool)
    is_anchor[trial[columns["anchor"].astype(bool)]] = True
    is_anchor |= np.isin(_text(columns["target"])[first], list(anchors))
    grids = {}
    for name in MEASURES:
        grids[name] = np.full(shape, np.nan)
        grids[name][trial, run] = np.ma.filled(columns[name].astype(float), np.nan)
    program, versions = np.zeros(shape, dtype=np.uint64), np.full(shape, None, dtype=object)
    program[trial, run] = columns["program"]
    versions[trial, run] = _text(columns["versions"])
    backends = _text(columns["backend"])[first]
    return Trials(runs, tuple(trials[first]), tuple(backends), is_anchor, grids, program, versions)


def _select(machine: str) -> str:
    """The rows of a machine on real devices. A row that shares the measurement of another has no values of its own."""
    values = ", ".join(
        f"CASE WHEN believed IS NOT FALSE AND ({measure.sql}) > 0 THEN ln({measure.sql}) END AS {measure.name}"
        for measure in MEASURES.values()
    )
    of_machine = f"machine = {sql_literal(machine)}"
    return (
        f"SELECT run_id, trial, backend, backend || ':' || route AS target, "
        "coalesce(baseline, false) OR pinned IS NOT NULL AS anchor, "
        f"coalesce(versions, '') AS versions, "
        f"hash(artifact_digest, versions, rnnbench, machine_python) AS program, {SERIES_DEVICE} AS series_device, "
        f"{values} "
        f"FROM {NIGHT_ROWS} WHERE {of_machine} AND run_id IN (SELECT run_id FROM runs WHERE {of_machine}) "
        "AND same_as IS NULL AND outcome IN ('ok', 'nonconforming') "
        "AND device_software IS NOT TRUE"
    )


def _text(column: npt.NDArray[np.object_]) -> npt.NDArray[np.object_]:
    return np.asarray(np.ma.filled(column, ""), dtype=object)
