"""Series of one machine: for each trial and measure a value a run, and what the anchors say of each run."""

from __future__ import annotations

from array import array
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
    devices = {(run_id, trial): device for run_id, trial, device in history.sql(_series_devices(machine)).rows}
    numbers: dict[tuple[str, str], int] = {}
    targets: dict[int, tuple[str, str]] = {}
    anchored: set[int] = set()
    known: dict[str, str] = {}
    trial, run, programs, values = array("q"), array("q"), array("Q"), array("d")
    versions_of_rows: list[str] = []
    for run_id, name, backend, target, is_anchor, versions, program, *measured in history.stream(_select(machine)):
        series = numbers.setdefault((name, devices.get((run_id, name), "")), len(numbers))
        targets.setdefault(series, (backend, target))
        if is_anchor or target in anchors:
            anchored.add(series)
        trial.append(series)
        run.append(number[run_id])
        programs.append(program)
        versions_of_rows.append(known.setdefault(versions, versions))
        values.extend(measured)
    ordered = sorted(numbers, key="\0".join)
    place = np.empty(len(numbers), dtype=np.intp)
    place[[numbers[key] for key in ordered]] = range(len(numbers))
    at = place[np.array(trial, dtype=np.intp)], np.array(run, dtype=np.intp)
    shape = (len(ordered), len(runs))
    of_measures = np.array(values).reshape(-1, len(MEASURES))
    grids = {name: np.full(shape, np.nan) for name in MEASURES}
    for index, grid in enumerate(grids.values()):
        grid[at] = of_measures[:, index]
    program_grid, versions_grid = np.zeros(shape, dtype=np.uint64), np.full(shape, None, dtype=object)
    program_grid[at] = np.array(programs, dtype=np.uint64)
    versions_grid[at] = versions_of_rows
    return Trials(
        runs,
        tuple(name for name, _ in ordered),
        tuple(targets[numbers[key]][0] for key in ordered),
        np.array([numbers[key] in anchored for key in ordered], dtype=bool),
        grids,
        program_grid,
        versions_grid,
    )


def _select(machine: str) -> str:
    """The rows of a machine on real devices. A row that shares the measurement of another has no values of its own."""
    values = ", ".join(
        f"CASE WHEN believed IS NOT FALSE AND ({measure.sql}) > 0 THEN ln({measure.sql}) ELSE 'nan'::DOUBLE END"
        for measure in MEASURES.values()
    )
    return (
        "SELECT run_id, trial, backend, backend || ':' || route, coalesce(baseline, false) OR pinned IS NOT NULL, "
        f"coalesce(versions, ''), hash(artifact_digest, versions, rnnbench, machine_python), {values} "
        f"FROM {_measured(machine)}"
    )


def _series_devices(machine: str) -> str:
    """The device of each row of the trials that ran on one: few, or none. A window over all rows takes a gigabyte."""
    rows = _measured(machine)
    on_devices = f"(SELECT DISTINCT trial FROM {rows} WHERE device_driver IS NOT NULL)"
    return f"SELECT run_id, trial, {SERIES_DEVICE} FROM {rows} SEMI JOIN {on_devices} USING (trial)"


def _measured(machine: str) -> str:
    of_machine = f"machine = {sql_literal(machine)}"
    return (
        f"(FROM {NIGHT_ROWS} WHERE {of_machine} AND run_id IN (SELECT run_id FROM runs WHERE {of_machine}) "
        "AND same_as IS NULL AND outcome IN ('ok', 'nonconforming') AND device_software IS NOT TRUE)"
    )
