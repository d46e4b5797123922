"""Changes of level as alerts: the trials of one backend that moved at one time are one alert.

Also whether a series has returned to its old level since.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property

import numpy as np

from rnnbench.history.alert import Detection, Evidence
from rnnbench.history.causes import MACHINE_SHARE, NEAR, weeks_shift
from rnnbench.history.change_points import PUBLISH, REACH, SCREEN, Array
from rnnbench.history.changes import Change, changes_of
from rnnbench.history.measures import MEASURES
from rnnbench.history.series import Trials

LAST = 90
"""Runs of each machine in which changes are looked for, as in the proof of `docs/history.md`."""
RETURNED_RUNS = 7
"""Runs whose median must be at the old level again."""
REST, LEAST_REST = 0.25, 0.01
"""A level has returned where less than a quarter of the change is left, or 1 % and less than half of it."""


@dataclass
class _Cluster:
    """Changes of one backend and measure at one time."""

    changes: list[Change] = field(default_factory=list)

    @property
    def first(self) -> Change:
        """The backend's, or that of the trial that moved most."""
        return min(self.changes, key=_importance)

    @property
    def members(self) -> frozenset[str]:
        trials = {change.subject for change in self.changes if change.level == "trial"}
        return frozenset(trials.union(*(change.together for change in self.changes if change.level == "backend")))


@dataclass(frozen=True)
class Levels:
    """The series of one machine, and the changes of their levels."""

    machine: str
    trials: Trials
    changes: tuple[Change, ...]
    """Changes of programs that the screen finds in the last runs."""
    published: tuple[Change, ...]
    moves: tuple[Change, ...]
    """Changes of the machine itself. They are no alerts."""
    explained: tuple[Change, ...]
    """Changes of programs that the environment caused, as the screen finds them. They are no alerts either."""

    @classmethod
    def of(cls, machine: str, trials: Trials, last: int = LAST) -> Levels:
        """The changes in the last runs of one machine. `trials` has all of its runs."""
        part = trials.part(-last)
        screened, published = (changes_of(machine, part, criteria) for criteria in (SCREEN, PUBLISH))
        moves = tuple(change for change in screened if change.level == "machine")
        candidates = tuple(change for change in screened if change.cause == "program")
        explained = tuple(change for change in screened if change.level != "machine" and change.cause == "environment")
        return cls(machine, trials, candidates, tuple(c for c in published if c.cause == "program"), moves, explained)

    def worse(self) -> Iterator[Detection]:
        """Levels that rose and have not returned."""
        for cluster in self._clusters(change for change in self.changes if change.ratio > 1):
            detection = self._detection(cluster)
            if not self.has_returned(detection):
                yield detection

    def better(self) -> Iterator[Detection]:
        """Levels that fell, sure enough to be told, and have not returned."""
        for cluster in self._clusters(change for change in self.published if change.ratio < 1):
            detection = self._detection(cluster)
            if not self.has_returned(detection):
                yield detection

    def distance(self, a: Detection, b: Detection) -> int:
        """Runs between the first nights of two alerts in which the trials of the first were measured.

        At most NEAR between a drift and what began while it lasted: its beginning is dated anew as it goes on.
        """
        runs = self.trials.runs_between(self._rows(a.members), self._index(a), self._index(b))
        return min(runs, NEAR) if _began_in(b, a) or (a.until and _began_in(a, b)) else runs

    def has_returned(self, detection: Detection) -> bool:
        """Whether the newest runs are at the level before the change again: of its backend, or of all its trials."""
        at = self._index(detection)
        both = [v for v in self._series(detection) if np.isfinite(v[:at]).any() and np.isfinite(v[at:]).any()]
        return bool(both) and all(level_has_returned(values, at, detection.ratio or 1.0) for values in both)

    def explanation(self, detection: Detection) -> str:
        """Why what was found is no alert of its own any more; empty where that is not known of each of its trials."""
        subjects = [detection.backend] if detection.whole_backend else detection.members
        reasons = [self._explanation(detection, subject) for subject in subjects]
        return reasons[0] if reasons and all(reasons) else ""

    def _explanation(self, detection: Detection, subject: str) -> str:
        at, rows = self._index(detection), self._rows([subject])
        for change in (*self.explained, *self.changes):
            if (change.subject, change.measure, change.ratio > 1) != (subject, detection.what, True):
                continue
            if change.until and _began_in(detection, change):
                return f"part of a drift since {change.night[:10]}"
            if change.reason and self.trials.runs_between(rows, at, self._number[change.run, change.night]) <= NEAR:
                return change.reason
        return ""

    @property
    def has_anchors(self) -> bool:
        return bool(self.trials.is_anchor.any())

    def _series(self, detection: Detection) -> Iterator[Array]:
        measure = MEASURES.get(detection.what)
        if measure is None:
            return
        of_backend = self._of_backends(detection.what).get(detection.backend) if detection.whole_backend else None
        if of_backend is not None:
            yield of_backend
        else:
            yield from self.trials.divided(measure)[self._rows(detection.members)]

    @cached_property
    def _of_backends(self) -> Callable[[str], dict[str, Array]]:
        """The series of the backends, by the name of a measure."""
        return cache(lambda measure: self.trials.backend_series(MEASURES[measure]))

    def _rows(self, members: Iterable[str]) -> list[int]:
        names = set(members)
        return [k for k, name in enumerate(self.trials.names) if name in names]

    def _index(self, detection: Detection) -> int:
        """Index of the alert's run; where the history has it no more, that of the first run after it."""
        earlier = sum(run.started < detection.night for run in self.trials.runs)
        return self._number.get((detection.run, detection.night), earlier)

    @cached_property
    def _number(self) -> dict[tuple[str, str], int]:
        """Index of each run, by its name and start."""
        return {(run.run, run.started): k for k, run in enumerate(self.trials.runs)}

    def _clusters(self, changes: Iterable[Change]) -> list[_Cluster]:
        clusters: dict[tuple[str, str], list[_Cluster]] = {}
        # A drift first: a trial that drifts and has a step joins the drift of its backend by its own drift.
        for change in sorted(changes, key=lambda c: (c.level != "backend", c.until is None, *_importance(c))):
            of_backend = clusters.setdefault((change.backend, change.measure), [])
            near = [
                (self._runs_apart(change, other.first), k)
                for k, other in enumerate(of_backend)
                if change.level == "trial" and change.subject not in {c.subject for c in other.changes}
            ]
            if near and min(near)[0] <= NEAR:
                of_backend[min(near)[1]].changes.append(change)
            elif whole := [cluster for cluster in of_backend if self._is_of(change, cluster.first)]:
                min(whole, key=lambda cluster: self._runs_apart(change, cluster.first)).changes.append(change)
            else:
                of_backend.append(_Cluster([change]))
        return [cluster for of_backend in clusters.values() for cluster in of_backend]

    def _is_of(self, change: Change, of_backend: Change) -> bool:
        """Whether a trial moved with its backend, which an earlier change tells: beside its backend it did not.

        A drift of a backend is such a change, while it looks like one step: its trials have further ones.
        """
        if (change.level, of_backend.level) != ("trial", "backend") or change.night < of_backend.night:
            return False
        at, whole = self._number[change.run, change.night], self._of_backends(change.measure)[change.backend]
        of_trial = self.trials.divided(MEASURES[change.measure])[self._rows([change.subject])]
        shifts = [weeks_shift(values - whole, at) for values in of_trial]
        return all(shift is not None and abs(shift) < MACHINE_SHARE * _size(change) for shift in shifts)

    def _detection(self, cluster: _Cluster) -> Detection:
        first = cluster.first
        whole = first.level == "backend"
        members = cluster.members
        if whole and not members:  # each too small for a change of its own
            names = zip(self.trials.names, self.trials.backends, strict=True)
            members = frozenset(name for name, backend in names if backend == first.backend)
        return Detection(
            machine=self.machine,
            backend=first.backend,
            what=first.measure,
            evidence=self._evidence(cluster.changes),
            whole_backend=whole,
            night=first.night,
            until=first.until,
            run=first.run,
            last_run=first.last_run,
            versions=first.versions,
            ratio=round(first.ratio, 4),
            interval=(round(first.interval[0], 4), round(first.interval[1], 4)),
            members=tuple(sorted(members)),
        )

    def _evidence(self, changes: Sequence[Change]) -> Evidence:
        return "published" if any(self._is_near(a, b) for a in changes for b in self.published) else "candidate"

    def _is_near(self, a: Change, b: Change) -> bool:
        """Whether two changes are one, as two criteria date it."""
        same = (a.level, a.subject, a.measure, a.ratio > 1) == (b.level, b.subject, b.measure, b.ratio > 1)
        return same and self._runs_apart(a, b) <= NEAR

    def _runs_apart(self, a: Change, b: Change) -> int:
        """Runs between two changes in which the trial of the first was measured: it may be dated before a gap.

        None between a drift and a change that began while it lasted and is no larger: parts of a drift look like steps.
        """
        if any(_began_in(x, y) and _size(x) <= _size(y) for x, y in ((a, b), (b, a))):
            return 0
        rows = self._rows([a.subject]) if a.level == "trial" else []
        return self.trials.runs_between(rows, *(self._number[change.run, change.night] for change in (a, b)))


def _began_in(a: Change | Detection, drift: Change | Detection) -> bool:
    """Whether one began while a drift lasted."""
    return drift.until is not None and drift.night <= a.night <= drift.until


def _size(change: Change) -> float:
    return abs(math.log(change.ratio))


def _importance(change: Change) -> tuple[bool, float, str, str]:
    """Sorts a backend's changes first, then the largest."""
    return change.level != "backend", -_size(change), change.night, change.subject


def level_has_returned(values: Array, at: int, ratio: float) -> bool:
    """Whether the newest values are near the level before the run `at` again, where they changed by `ratio`.

    `values` [runs] are logarithms; a run without a value is NaN.
    """
    before, after = (part[np.isfinite(part)] for part in (values[:at], values[at:]))
    if not len(before) or len(after) < RETURNED_RUNS + NEAR:
        return False
    size = math.log(ratio)
    rest = (np.median(after[-RETURNED_RUNS:]) - np.median(before[-REACH:])) * math.copysign(1, size)
    return bool(rest < min(max(REST * abs(size), LEAST_REST), abs(size) / 2))
