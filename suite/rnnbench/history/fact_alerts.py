"""Facts as alerts: events that are bad news and still hold, and runs that are missing."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from functools import cached_property, partial
from itertools import pairwise
from statistics import median

from rnnbench.history.alert import SILENCE, Detection
from rnnbench.history.causes import NEAR
from rnnbench.history.columns import NIGHT_ROWS
from rnnbench.history.entry import RunEntry
from rnnbench.history.events import Event, find_events
from rnnbench.history.store import History
from rnnbench.results import fact_direction, sql_literal

GONE = "measured"
"""The fact of a trial that is measured no longer."""
LEAST_NIGHTS_OF_CASE = 5
"""Nights of a case from which on it is known how often it runs."""
GAP_NIGHTS = 14
"""Newest nights of a case by which it is known how often it runs."""
LATE = 1.5
"""A case is silent after so many times its usual time between nights."""
Key = tuple[str, str, str]
"""Machine, trial, fact."""


@dataclass(frozen=True)
class Facts:
    """The events of a history, and what holds now."""

    history: History
    last: int
    """Runs of each machine in which events are looked for."""

    @cached_property
    def events(self) -> tuple[Event, ...]:
        return find_events(self.history)

    @cached_property
    def now(self) -> Mapping[Key, Event]:
        """The last event of each fact: what holds now is what came after it."""
        return {(event.machine, event.subject, event.fact): event for event in self.events}

    @cached_property
    def runs(self) -> Mapping[str, Sequence[RunEntry]]:
        """By machine, oldest first."""
        runs: defaultdict[str, list[RunEntry]] = defaultdict(list)
        for run in self.history.nights:
            runs[run.machine].append(run)
        return runs

    def worse(self) -> Iterator[Detection]:
        """Bad news that still holds: trials of one backend with the same news at one time are one."""
        groups: dict[tuple[str, str, str, str], list[list[Event]]] = {}
        for event in self.events:
            recent = self.runs.get(event.machine, ())[-self.last :]
            holds = self.now[event.machine, event.subject, event.fact] == event
            is_recent = bool(recent) and event.night >= recent[0].started
            if not (is_recent and holds and is_worse(event.fact, event.before, event.after)):
                continue
            of_group = groups.setdefault((event.machine, event.backend, event.fact, event.after), [])
            if of_group and self.distance(event.machine, of_group[-1][0].night, event.night) <= NEAR:
                of_group[-1].append(event)
            else:
                of_group.append([event])
        for clusters in groups.values():
            yield from map(self._detection, clusters)

    def has_returned(self, detection: Detection) -> bool:
        """Whether none of its trials has the bad news any more."""
        last = [self.now.get((detection.machine, trial, detection.what)) for trial in detection.members]
        if detection.what == GONE:
            return not any(last)
        last_events = [event for event in last if event is not None]
        return bool(last_events) and not any(
            is_worse(detection.what, detection.before, event.after) for event in last_events
        )

    def distance(self, machine: str, a: str, b: str) -> int:
        """Runs of the machine between two nights."""
        first, second = sorted((a, b))
        return sum(first < run.started <= second for run in self.runs.get(machine, ()))

    def _detection(self, events: Sequence[Event]) -> Detection:
        first = events[0]
        members = tuple(sorted({event.subject for event in events}))
        return Detection(
            machine=first.machine,
            backend=first.backend,
            what=first.fact,
            evidence="event",
            whole_backend=1 < len(members) >= self._trials.get((first.machine, first.backend, first.run), 0),
            night=first.night,
            run=first.run,
            versions=first.versions,
            before=first.before,
            after=first.after,
            detail=first.detail,
            members=members,
        )

    @cached_property
    def _trials(self) -> Mapping[tuple[str, str, str], int]:
        """By machine, backend and name of the run."""
        counted = self.history.sql(f"SELECT machine, backend, run, count(*) FROM {NIGHT_ROWS} GROUP BY ALL").rows
        return {(machine, backend, run): int(count) for machine, backend, run, count in counted}


def is_worse(fact: str, before: str, after: str) -> bool:
    """Whether a fact that changed is bad news."""
    if fact == "lowered":
        return ("unrolled" in after and "unrolled" not in before) or ("fused" in before and "fused" not in after)
    return fact == GONE or fact_direction(fact, before, after) == "worse"


@dataclass(frozen=True)
class Silences:
    """Cases whose nights are missing, by how often each has run on its machine."""

    nights: Mapping[tuple[str, str], Sequence[RunEntry]]
    """The first run of each date, by machine and case."""
    now: datetime
    """UTC, without a zone, as the history has it."""
    trials_of: Callable[[RunEntry, str], frozenset[str]] = lambda run, case: frozenset()
    """What a run has of a case: its trials, without the case in their names."""

    @classmethod
    def of(cls, history: History, now: datetime) -> Silences:
        nights: defaultdict[tuple[str, str], dict[str, RunEntry]] = defaultdict(dict)
        for run in history.nights:
            for case in run.cases:
                nights[run.machine, case].setdefault(run.started[:10], run)
        by_case = {key: tuple(entries.values()) for key, entries in nights.items()}
        return cls(by_case, now, partial(_trials_of, history))

    def worse(self, last: int) -> Iterator[Detection]:
        """A machine, or some of its cases, that should have run again, and did so within the last nights."""
        silent: dict[tuple[str, str], list[str]] = {}
        for (machine, case), runs in self.nights.items():
            usual = _usual(runs)
            if usual and LATE < (self.now - _time(runs[-1])) / usual < last:
                silent.setdefault((machine, runs[-1].started[:10]), []).append(case)
        for (machine, _), cases in silent.items():
            newest = max((self.nights[machine, case][-1] for case in cases), key=lambda run: run.started)
            yield Detection(
                machine=machine,
                what=SILENCE,
                evidence="event",
                whole_backend=len(cases) == sum(other == machine for other, _ in self.nights),
                night=newest.started,
                run=newest.run,
                detail="; ".join(filter(None, (self._since(machine, case) for case in sorted(cases)))),
                members=tuple(sorted(cases)),
            )

    def _since(self, machine: str, case: str) -> str:
        """What has run since the last run of a case: another machine, or another case; empty where neither has."""
        last = self.nights[machine, case][-1]
        others = [(name, runs) for (where, name), runs in self.nights.items() if where == machine]
        began = [(name, runs[0]) for name, runs in others if runs[0].started > last.started]
        trials = self.trials_of(last, case) if began else frozenset()
        if renamed := [name for name, first in began if trials and self.trials_of(first, name) == trials]:
            return f"{case} was renamed: {renamed[0]} has the same trials since"
        elsewhere = (
            (runs[0].started, where)
            for (where, name), runs in self.nights.items()
            if name == case and runs[0].started > last.started
        )
        for started, where in sorted(elsewhere)[:1]:
            return f"machine {where} has run {case} since {started[:10]}"
        if any(runs[-1].started > last.started for _, runs in others):
            return f"the machine has run other cases since, so {case} may be in its night no longer"
        return ""

    def has_returned(self, detection: Detection) -> bool:
        """Whether each of its cases has run again on the machine."""
        return all(
            self.nights[detection.machine, case][-1].started > detection.night
            for case in detection.members
            if (detection.machine, case) in self.nights
        )

    def missing(self, since: date) -> Iterator[tuple[str, str, Sequence[date]]]:
        """Machine, case and the dates of the nights that are missing between two others, the last one since a date."""
        for (machine, case), runs in self.nights.items():
            usual = _usual(runs)
            for before, after in pairwise(runs):
                dates = list(_expected_between(before, after, usual)) if usual else []
                if dates and dates[-1] >= since:
                    yield machine, case, dates


def _expected_between(before: RunEntry, after: RunEntry, usual: timedelta) -> Iterator[date]:
    expected = _time(before) + usual
    while expected + (LATE - 1) * usual < _time(after):
        yield expected.date()
        expected += usual


def _trials_of(history: History, run: RunEntry, case: str) -> frozenset[str]:
    where = f'run_id = {sql_literal(run.run_id)} AND "case" = {sql_literal(case)}'
    trials = [trial for (trial,) in history.sql(f"SELECT trial FROM rows WHERE {where}").rows]
    # The digest at the end is of the case's name, too.
    return frozenset(trial[len(case) + 1 :].rpartition("-")[0] for trial in trials)


def _usual(runs: Sequence[RunEntry]) -> timedelta:
    """The usual time between two nights; none where there are too few."""
    if len(runs) < LEAST_NIGHTS_OF_CASE:
        return timedelta()
    days = [date.fromisoformat(run.started[:10]) for run in runs[-GAP_NIGHTS:]]
    return timedelta(days=median((b - a).days for a, b in pairwise(days)))


def _time(run: RunEntry) -> datetime:
    return datetime.fromisoformat(run.started)
