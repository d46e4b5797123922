"""What the site is made from: the newest record of each trial on each machine, the nights, and what changed."""

from __future__ import annotations

import hashlib
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import PurePosixPath

from rnnbench.history import (
    Alert,
    Alerts,
    Change,
    Event,
    History,
    MachineAlarms,
    false_alarms,
    find_changes,
    find_events,
)
from rnnbench.results import Entry, Run, StoreError, View, Workload, file_name, fingerprint, sound, view_runs
from rnnbench.site.nights import Night, nights_of

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


@dataclass(frozen=True)
class Machine:
    """A machine with one interpreter: latencies of its trials may be compared."""

    fingerprint: str
    python: str
    view: View
    shown: dict[str, Shown]
    """By trial."""

    @property
    def cpu(self) -> str:
        return str(self.view.runs[-1].info.machine.get("cpu", "processor not recorded"))

    @property
    def name(self) -> str:
        """For people: processor and fingerprint."""
        return f"{self.cpu} [{self.fingerprint}]"

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
    nights: tuple[Night, ...]
    """Oldest first: the runs of the history, and the given runs that it does not have."""
    changes: tuple[Change, ...]
    events: tuple[Event, ...]
    alerts: tuple[Alert, ...]
    """With the states that people gave them; as the file of alerts has them."""
    false_alarms: tuple[MachineAlarms, ...]
    """By machine; of those that have A/A comparisons."""
    has_history: bool
    warnings: tuple[str, ...]

    @property
    def newest(self) -> Night:
        return self.nights[-1]

    @property
    def synthetic(self) -> bool:
        return any(run.info.machine.get(SYNTHETIC) for machine in self.machines for run in machine.view.runs)

    @cached_property
    def pages(self) -> dict[tuple[str, str], str]:
        """The page of each trial by machine and trial."""
        return {(m.fingerprint, trial): shown.page for m in self.machines for trial, shown in m.shown.items()}

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
    """Gather everything. Raises StoreError where there is no record to show."""
    if not runs:
        raise StoreError("the site needs at least one run whose records it can show; name one: rnnbench site RUN…")
    runs, damaged = sound(runs)
    ordered = sorted(runs, key=lambda run: (run.info.started, run.info.run))
    groups: dict[tuple[str, str], list[Run]] = {}
    for run in ordered:
        groups.setdefault((fingerprint(run.info.machine), str(run.info.machine.get("python", ""))), []).append(run)
    machines = tuple(_machine(*key, group) for key, group in sorted(groups.items()))
    has_history = history is not None and bool(history.nights)
    return Content(
        machines,
        nights_of(history, ordered),
        find_changes(history) if history and has_history else (),
        find_events(history) if history and has_history else (),
        alerts.all if alerts else (),
        false_alarms(history) if history else (),
        has_history,
        (*(history.warnings if history else ()), *damaged, *(w for machine in machines for w in machine.view.warnings)),
    )


def _machine(identity: str, python: str, runs: Sequence[Run]) -> Machine:
    view = view_runs(runs)
    newest = {record.trial: run for run in view.runs for record in run.records}
    shown = {
        entry.record.trial: Shown(entry, newest[entry.record.trial], page_name(identity, python, entry.record.trial))
        for entry in view.entries
    }
    return Machine(identity, python, view, shown)


def page_name(machine: str, python: str, trial: str) -> str:
    content = "\n".join((machine, python, trial)).encode("utf-8", "surrogatepass")
    return hashlib.sha256(content).hexdigest()[:PAGE_DIGITS]


def workload_name(machine: Machine, workload: Workload) -> str:
    """A workload's name in addresses and in names of files."""
    return file_name(f"{workload.family.slug}-h{workload.hidden}-{machine.fingerprint[:4]}")


def command_of(entry: Entry, run: Run) -> str:
    """The command that measures one trial again: its case, and what the run's command changed in it."""
    case = entry.record.case
    words = list(run.info.command)
    files = [word for word in words if PurePosixPath(word).stem == case and word.endswith((".yaml", ".yml"))]
    changed = []
    for index, word in enumerate(words):
        if word == "--set" and index + 1 < len(words):
            changed += [word, words[index + 1]]
        elif word.startswith("--set="):
            changed.append(word)
    digits = entry.record.trial.rpartition("-")[2]
    named = files[:1] or [f"cases/{case}.yaml"]
    return shlex.join(["rnnbench", "run", *named, *changed, f"--backend={entry.target}", f"--only={digits}"])
