"""What changed in a history, and whether the program or the machine did: machines first, then backends, then trials."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from typing import Literal

import numpy as np

from rnnbench.history.causes import NEAR, Causes, program_change
from rnnbench.history.change_points import PUBLISH, SCREEN, Array, ChangeCriteria, Step, find_steps
from rnnbench.history.measures import MEASURES, Measure
from rnnbench.history.series import Trials, trials_of_machines
from rnnbench.history.settings import read_settings
from rnnbench.history.store import History

Level = Literal["machine", "backend", "trial"]
Cause = Literal["program", "environment"]
LEVELS: tuple[Level, ...] = ("machine", "backend", "trial")


@dataclass(frozen=True)
class Change:
    """A level that changed: of a machine's anchors, of a backend, or of a trial."""

    machine: str
    """Fingerprint."""
    level: Level
    subject: str
    """The machine's fingerprint, the backend, or the trial's id."""
    backend: str
    """Empty for a machine."""
    measure: str
    run: str
    """Name of the first run with the new level."""
    night: str
    """Start of that run, UTC."""
    last_run: str
    """Name of the last run with the old level."""
    versions: tuple[str, str]
    """Versions of the backend's packages, before and after; equal where they did not change. Where several nights may
    be the first one with the new level, those before all of them and after all."""
    ratio: float
    """New over old level, the anchors' trend divided out."""
    interval: tuple[float, float]
    """Its 95 % interval."""
    cause: Cause
    """`environment`: the machine, and no alert."""
    reason: str
    """Why it is the environment's; empty otherwise."""
    together: tuple[str, ...] = ()
    """Trials whose level changed in the same way at about the same run, this one left out."""
    until: str | None = None
    """Of a drift: start of the first run with its last level. None where the level changed suddenly."""


@dataclass(frozen=True)
class _SeriesStep:
    """A step of one series."""

    measure: Measure
    level: Level
    subject: str
    members: tuple[int, ...]
    """Trials that the series is made of."""
    step: Step


def find_changes(history: History, criteria: ChangeCriteria = PUBLISH, last: int | None = None) -> tuple[Change, ...]:
    """Every change of every machine, or of the last runs of each: machines first, then backends, then trials."""
    anchors = read_settings(history.root).anchors
    return tuple(
        change
        for machine, trials in trials_of_machines(history, anchors)
        for change in changes_of(machine, trials if last is None else trials.part(-last), criteria)
    )


def told_by_backends(changes: Sequence[Change]) -> frozenset[Change]:
    """The changes of trials that a change of their backend tells: the nearest one of each trial that moved with it.

    While a drift of the backend lasted, they are all those that are no larger. An earlier or a later step of such a
    trial is news of its own.
    """
    of_trials: dict[tuple[str, str, str, bool], list[Change]] = {}
    for change in changes:
        if change.level == "trial":
            of_trials.setdefault((change.machine, change.subject, change.measure, change.ratio > 1), []).append(change)
    told = set[Change]()
    for change in changes:
        if change.level == "backend":
            for trial in change.together:
                own = of_trials.get((change.machine, trial, change.measure, change.ratio > 1), [])
                told.update(sorted(own, key=partial(_time_between, change))[:1])
                told.update(one for one in own if _lasted(change, one))
    return frozenset(told)


def _time_between(a: Change, b: Change) -> timedelta:
    return abs(datetime.fromisoformat(a.night) - datetime.fromisoformat(b.night))


def _lasted(drift: Change, change: Change) -> bool:
    """Whether a change began while a drift lasted, and is no larger."""
    is_within = drift.until is not None and drift.night <= change.night <= drift.until
    return is_within and abs(math.log(change.ratio)) <= abs(math.log(drift.ratio))


def changes_of(machine: str, trials: Trials, criteria: ChangeCriteria = PUBLISH) -> list[Change]:
    """The changes of one machine: its own first, then backends, then trials, each by night."""
    series_steps = _series_steps(machine, trials, criteria)
    moves: dict[str, list[Step]] = {}
    for series_step in series_steps:
        if series_step.level == "machine":
            moves.setdefault(series_step.measure.name, []).append(series_step.step)
    causes = {name: Causes(trials, m, moves.get(m.anchored_by or "", ())) for name, m in MEASURES.items()}
    nearby: dict[tuple[str, int], list[_SeriesStep]] = {}
    for series_step in series_steps:
        if series_step.level == "trial":
            at = series_step.step.index
            for run in range(at - NEAR, at + NEAR + 1):
                nearby.setdefault((series_step.measure.name, run), []).append(series_step)
    changes = [
        _change(
            machine,
            trials,
            series_step,
            _environment(series_step, causes),
            _together(series_step, nearby),
        )
        for series_step in series_steps
    ]
    found = _with_drifts(*_told(changes, series_steps, causes, criteria))
    return sorted(found, key=lambda c: (LEVELS.index(c.level), c.night, c.subject, c.measure))


def _told(
    changes: Sequence[Change],
    series_steps: Sequence[_SeriesStep],
    causes: Mapping[str, Causes],
    criteria: ChangeCriteria,
) -> tuple[list[Change], list[_SeriesStep]]:
    """The changes with their steps. Those that are told without a measurement are certain to be no move of anchors."""
    both = [
        (change, one)
        for change, one in zip(changes, series_steps, strict=True)
        if change.cause == "environment"
        or not (criteria.is_strict and causes[change.measure].is_of_anchors_or_program(one.step, one.members))
    ]
    return [change for change, _ in both], [one for _, one in both]


def _with_drifts(changes: Sequence[Change], series_steps: Sequence[_SeriesStep]) -> Iterator[Change]:
    """The changes; the steps of one drift are one change. What the environment caused of it stays apart."""
    of_drifts: dict[tuple[str, Level, str, int], list[Change]] = {}
    for change, series_step in zip(changes, series_steps, strict=True):
        drift = series_step.step.drift
        if drift is None or change.cause == "environment":
            yield change
        else:
            key = (change.measure, change.level, change.subject, drift)
            of_drifts.setdefault(key, []).append(change)
    for steps in of_drifts.values():
        yield steps[0] if len(steps) == 1 else _drift(steps)


def _drift(steps: Sequence[Change]) -> Change:
    first, last = steps[0], steps[-1]
    size = sum(math.log(step.ratio) for step in steps)
    # The steps' errors are nearly independent.
    reach = math.hypot(*(math.log(step.interval[1] / step.interval[0]) / 2 for step in steps))
    return replace(
        first,
        until=last.night,
        versions=(first.versions[0], last.versions[1]),
        ratio=math.exp(size),
        interval=(math.exp(size - reach), math.exp(size + reach)),
        together=tuple(dict.fromkeys(trial for step in steps for trial in step.together)),
    )


def _series_steps(machine: str, trials: Trials, criteria: ChangeCriteria) -> list[_SeriesStep]:
    series = list(_series(machine, trials))
    # A move of the machine is no alert, and hides none that is larger: it may be told early.
    machines = [(kind, values) for kind, values in series if kind.level == "machine"]
    others = [(kind, values) for kind, values in series if kind.level != "machine"]
    return [*_steps(machines, SCREEN), *_steps(others, criteria)]


def _steps(series: Sequence[tuple[_SeriesStep, Array]], criteria: ChangeCriteria) -> list[_SeriesStep]:
    steps = find_steps([values for _, values in series], criteria)
    return [replace(kind, step=step) for (kind, _), of_series in zip(series, steps, strict=True) for step in of_series]


def _series(machine: str, trials: Trials) -> Iterator[tuple[_SeriesStep, Array]]:
    no_step = Step(0, 0.0, 0.0, 0.0, 1.0)
    anchors = tuple(int(k) for k in np.flatnonzero(trials.is_anchor))
    for measure in MEASURES.values():
        trend = trials.anchors(measure)
        if trend is not None and measure.anchored_by == measure.name:
            yield _SeriesStep(measure, "machine", machine, anchors, no_step), trend
        for backend, values in trials.backend_series(measure).items():
            members = tuple(k for k, name in enumerate(trials.backends) if name == backend and not trials.is_anchor[k])
            yield _SeriesStep(measure, "backend", backend, members, no_step), values
        for k, values in enumerate(trials.divided(measure)):
            if not trials.is_anchor[k] and np.isfinite(values).any():
                yield _SeriesStep(measure, "trial", trials.names[k], (k,), no_step), values


def _environment(series_step: _SeriesStep, causes: Mapping[str, Causes]) -> str:
    """Why the program did not cause a step; empty where it may have."""
    if series_step.level == "machine":
        return "the anchors moved, whose versions did not change"
    return causes[series_step.measure.name].environment(series_step.step, series_step.members)


def _together(series_step: _SeriesStep, nearby: Mapping[tuple[str, int], Sequence[_SeriesStep]]) -> tuple[str, ...]:
    """`nearby` has the steps of trials by measure and by each run that they may be dated at."""
    return tuple(
        other.subject
        for other in nearby.get((series_step.measure.name, series_step.step.index), ())
        if other.subject != series_step.subject
        and other.step.size * series_step.step.size > 0
        and (series_step.level != "backend" or other.members[0] in series_step.members)
    )


def _change(machine: str, trials: Trials, series_step: _SeriesStep, reason: str, together: tuple[str, ...]) -> Change:
    step, at = series_step.step, series_step.step.index
    measured = np.flatnonzero(trials.program[list(series_step.members)].any(axis=0))
    last = int(measured[max(int(np.searchsorted(measured, at)) - 1, 0)])
    present = next((k for k in series_step.members if trials.program[k, at]), series_step.members[0])
    same = trials.versions[present, at] or ""
    return Change(
        machine=machine,
        level=series_step.level,
        subject=series_step.subject,
        backend="" if series_step.level == "machine" else trials.backends[series_step.members[0]],
        measure=series_step.measure.name,
        run=trials.runs[at].run,
        night=trials.runs[at].started,
        last_run=trials.runs[last].run,
        versions=program_change(trials, series_step.members, at, step.between) or (same, same),
        ratio=math.exp(step.size),
        interval=(math.exp(step.low), math.exp(step.high)),
        cause="environment" if reason else "program",
        reason=reason,
        together=together,
    )
