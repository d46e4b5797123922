"""What the site is made from: the newest record of each trial on each machine, the nights, and what changed."""

from __future__ import annotations

import hashlib
import shlex
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from rnnbench.history import (
    Alert,
    Alerts,
    Change,
    CheckEntry,
    Event,
    History,
    MachineAlarms,
    ReleaseSeries,
    RunEntry,
    false_alarms,
    find_changes,
    find_events,
    release_series,
)
from rnnbench.reports import device_names
from rnnbench.results import (
    Entry,
    Run,
    StoreError,
    View,
    Workload,
    case_file_in,
    file_name,
    settings_in,
    sound,
    split_by_machine,
    view_runs,
    wrong_date,
    wrong_dates,
)
from rnnbench.site.nights import Night, nights_of, rows_left_out
from rnnbench.site.stored_records import Row
from rnnbench.site.stored_runs import StoredRun, fingerprint_of, newest_releases, stored_runs

PAGE_DIGITS = 12
SYNTHETIC = "synthetic"
"""A machine whose description has this key, set, was made up: every page says so."""


@dataclass(frozen=True)
class Shown:
    """A trial on one machine, as its newest record has it."""

    entry: Entry
    run: Run
    page: str
    """Name of its page and of its files, without an ending."""

    @property
    def trial(self) -> str:
        return self.entry.record.trial

    @property
    def command(self) -> str:
        return command_of(self.entry, self.run)

    @property
    def row(self) -> Row | None:
        """Its row in the history, of which the record was made; None where the record itself is there."""
        return self.run.stored.get(self.trial) if isinstance(self.run, StoredRun) else None


@dataclass(frozen=True)
class Machine:
    """A machine with one interpreter: latencies of its trials may be compared."""

    fingerprint: str
    python: str
    view: View
    shown: dict[str, Shown]
    """By trial."""
    interpreter: str = ""
    """The version of Python, where the site has several of this machine."""

    @property
    def cpu(self) -> str:
        return str(self.view.runs[-1].info.machine.get("cpu", "processor not recorded"))

    @property
    def devices(self) -> list[str]:
        """The devices other than the processor on which its trials ran."""
        return device_names(self.view)

    @property
    def is_stored(self) -> bool:
        """Whether some of its records were made of rows."""
        return any(isinstance(run, StoredRun) for run in self.view.runs)

    @property
    def name(self) -> str:
        """For people: processor and fingerprint, and what tells it from itself with another interpreter."""
        return f"{self.cpu} [{self.fingerprint}]" + (f", Python {self.interpreter}" if self.interpreter else "")

    @cached_property
    def workloads(self) -> dict[Workload, list[Shown]]:
        return {
            workload: [self.shown[entry.record.trial] for entry in entries]
            for workload, entries in self.view.workloads.items()
        }


@dataclass(frozen=True)
class Content:
    """All that the pages show."""

    machines: tuple[Machine, ...]
    """With the trials that are ranked, counted and compared."""
    backfills: tuple[Machine, ...]
    """With the newest release of each trial of a backfill that no machine above has. It was sampled beside its
    reference alone, so it stands in no ranking."""
    nights: tuple[Night, ...]
    """Oldest first: the runs of the history, and the given runs that it does not have."""
    changes: tuple[Change, ...]
    events: tuple[Event, ...]
    alerts: tuple[Alert, ...]
    """With the states that people gave them; as the file of alerts has them."""
    has_alerts_file: bool
    checks: tuple[CheckEntry, ...]
    """Conformance checks of new versions, oldest first."""
    false_alarms: tuple[MachineAlarms, ...]
    """By machine; of those that have A/A comparisons."""
    releases: tuple[ReleaseSeries, ...]
    backfill_runs: tuple[RunEntry, ...]
    newest: RunEntry
    """The newest run of all."""
    has_history: bool
    """Whether there is a history of nights."""
    warnings: tuple[str, ...]

    @property
    def all_machines(self) -> tuple[Machine, ...]:
        return (*self.machines, *self.backfills)

    @property
    def synthetic(self) -> bool:
        return any(run.info.machine.get(SYNTHETIC) for machine in self.machines for run in machine.view.runs)

    def short_name(self, machine: Machine) -> str:
        """The processor, where it says which machine is meant."""
        return machine.cpu if sum(other.cpu == machine.cpu for other in self.machines) == 1 else machine.name

    @cached_property
    def pages(self) -> dict[tuple[str, str], str]:
        """The page of each trial by machine and trial."""
        return _pages(self.all_machines)

    def named_machine(self, fingerprint: str) -> str:
        """The machine for people, where the site tells of several; empty where it can be no other."""
        names = self._machine_names
        return names.get(fingerprint, fingerprint) if len(names.keys() | {fingerprint}) > 1 else ""

    @cached_property
    def _machine_names(self) -> dict[str, str]:
        cpus = {night.entry.machine: night.entry.machine_cpu for night in self.nights}
        cpus |= {machine.fingerprint: machine.cpu for machine in self.all_machines}
        alike = Counter(cpus.values())
        return {
            identity: identity if not cpu else cpu if alike[cpu] == 1 else f"{cpu} [{identity}]"
            for identity, cpu in cpus.items()
        }

    @cached_property
    def starts_of(self) -> dict[str, list[str]]:
        """When the nights of each machine started, the oldest first."""
        found: dict[str, list[str]] = {}
        for night in self.nights:
            found.setdefault(night.entry.machine, []).append(night.entry.started)
        return found

    @cached_property
    def releases_of(self) -> dict[tuple[str, str], list[ReleaseSeries]]:
        """By machine and trial."""
        found: dict[tuple[str, str], list[ReleaseSeries]] = {}
        for series in self.releases:
            found.setdefault((series.machine, series.trial), []).append(series)
        return found

    @cached_property
    def changes_of(self) -> dict[tuple[str, str], list[Change]]:
        """What a trial's page shows, by machine and trial: its own changes, and its backend's that it took part in."""
        found: dict[tuple[str, str], list[Change]] = {}
        for change in self.changes:
            trials = change.together if change.level == "backend" else (change.subject,)
            for trial in trials:
                found.setdefault((change.machine, trial), []).append(change)
        return found


def read_content(runs: Sequence[Run], history: History | None, alerts: Alerts | None = None) -> Content:
    """Gather everything. Raises StoreError where there is nothing to show."""
    runs, damaged = sound(runs)
    wrong = wrong_dates(run.info.started for run in runs)
    ordered = sorted(runs, key=lambda run: (run.info.started not in wrong, run.info.started, run.info.run))
    machines = _machines(ordered)
    series = release_series(history) if history else ()
    backfills = _backfills(history, series, set(_pages(machines))) if history else ()
    nights = nights_of(history, [part for run in ordered if not isinstance(run, StoredRun) for part in run.parts])
    entries = [*(night.entry for night in nights), *(history.runs if history else ())]
    if not entries or not (machines or backfills):
        raise StoreError("the site needs at least one run whose records it can show; name one: rnnbench site RUN…")
    has_history = history is not None and bool(history.nights)
    warnings = (w for machine in (*machines, *backfills) for w in machine.view.warnings)
    undated = (
        f"{run.info.run} is dated {run.info.started}, {wrong[run.info.started]}, and is taken for the oldest run"
        for run in ordered
        if run.info.started in wrong
    )
    return Content(
        machines=machines,
        backfills=backfills,
        nights=nights,
        changes=find_changes(history) if history and has_history else (),
        events=find_events(history) if history and has_history else (),
        alerts=alerts.all if alerts else (),
        has_alerts_file=alerts is not None and bool(alerts.text),
        checks=history.checks if history else (),
        false_alarms=false_alarms(history) if history else (),
        releases=series,
        backfill_runs=tuple(entry for entry in history.runs if entry.release) if history else (),
        newest=max(entries, key=lambda entry: (not wrong_date(entry.started), entry.started, entry.run_id)),
        has_history=has_history,
        warnings=(*((*history.warnings, *rows_left_out(history)) if history else ()), *damaged, *undated, *warnings),
    )


def _machines(runs: Sequence[Run]) -> tuple[Machine, ...]:
    groups: dict[tuple[str, str], list[Run]] = {}
    for run in runs:
        for part in split_by_machine(run):
            groups.setdefault((fingerprint_of(part), str(part.info.machine.get("python", ""))), []).append(part)
    interpreters = Counter(identity for identity, _ in groups)
    return tuple(
        _machine(identity, python, group, python if interpreters[identity] > 1 else "")
        for (identity, python), group in sorted(groups.items())
    )


def _machine(identity: str, python: str, runs: Sequence[Run], interpreter: str) -> Machine:
    # Equal fingerprints are one machine. A stored run has less of its description than a run with a folder.
    described = max((part.info.machine for run in runs for part in run.parts), key=len)
    alike = [_of_machine(run, described) for run in runs]
    view = view_runs(alike)
    newest = {record.trial: run.part_of(record) for run in alike for record in run.records}
    shown = {
        entry.record.trial: Shown(entry, newest[entry.record.trial], page_name(identity, python, entry.record.trial))
        for entry in view.entries
    }
    return Machine(identity, python, view, shown, interpreter)


def _of_machine(run: Run, machine: dict[str, Any]) -> Run:
    """The run, and the shards that it was merged of, with this description of their machine."""
    info = run.info.model_copy(update={"machine": machine})
    return replace(run, info=info, shards=tuple(_of_machine(shard, machine) for shard in run.shards))


def _backfills(history: History, series: Sequence[ReleaseSeries], shown: set[tuple[str, str]]) -> tuple[Machine, ...]:
    machines = _machines(stored_runs(history, newest_releases(history, series)))
    others = (
        replace(m, shown={trial: own for trial, own in m.shown.items() if (m.fingerprint, trial) not in shown})
        for m in machines
    )
    return tuple(machine for machine in others if machine.shown)


def _pages(machines: Sequence[Machine]) -> dict[tuple[str, str], str]:
    return {(m.fingerprint, trial): shown.page for m in machines for trial, shown in m.shown.items()}


def page_name(machine: str, python: str, trial: str) -> str:
    content = "\n".join((machine, python, trial)).encode("utf-8", "surrogatepass")
    return hashlib.sha256(content).hexdigest()[:PAGE_DIGITS]


def workload_name(machine: Machine, workload: Workload) -> str:
    """A workload's name in addresses and in names of files."""
    others = "".join(f"-{text}" for text in (machine.interpreter, workload.node) if text)
    return file_name(f"{workload.family.slug}-h{workload.hidden}-{machine.fingerprint[:4]}{others}")


def command_of(entry: Entry, run: Run) -> str:
    """The command that measures one trial again: its case, and what the run's command changed in it."""
    case = entry.record.case
    words = run.info.command
    file = case_file_in(words, case) or f"cases/{case}.yaml"
    digits = entry.record.trial.rpartition("-")[2]
    return shlex.join(["rnnbench", "run", file, *settings_in(words), f"--backend={entry.target}", f"--only={digits}"])
