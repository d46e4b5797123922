"""The page of machines: what each is, when its speed changed, and how often it raises false alarms."""

from __future__ import annotations

from dataclasses import dataclass, replace

from rnnbench.history import Change, MachineAlarms
from rnnbench.reports import Table, machine_table, run_table, version_table
from rnnbench.site.changes import sentence_of
from rnnbench.site.content import Content, Machine
from rnnbench.site.nights import Night
from rnnbench.site.page import Folder
from rnnbench.site.stored_runs import StoredRun


@dataclass(frozen=True)
class MachineSection:
    """What the page says of one machine with one interpreter."""

    machine: Machine
    is_first: bool
    """Whether it has the anchor of its fingerprint: the first of its interpreters has."""
    nights: list[Night]
    backfills: int
    """Runs of backfills."""
    moves: list[tuple[Change, str]]
    """Changes of its speed, each with its sentence."""
    tables: list[Table]
    """Machine, versions and runs."""
    false_alarms: list[MachineAlarms]


def write_machines(content: Content, folder: Folder) -> None:
    """`machines.html`, with a section for each machine and interpreter."""
    first = {machine.fingerprint: machine for machine in reversed(content.all_machines)}
    sections = [
        _section(machine, content, is_first=machine is first[machine.fingerprint]) for machine in content.all_machines
    ]
    folder.page(
        "machines.html",
        "machines.html",
        content=content,
        sections=sections,
        other_machines=[alarms for alarms in content.false_alarms if alarms.machine not in first],
    )


def _section(machine: Machine, content: Content, *, is_first: bool) -> MachineSection:
    fingerprint, view = machine.fingerprint, machine.view
    with_folder = replace(view, runs=tuple(run for run in view.runs if not isinstance(run, StoredRun)))
    return MachineSection(
        machine=machine,
        is_first=is_first,
        nights=[night for night in content.nights if night.entry.machine == fingerprint],
        backfills=sum(entry.machine == fingerprint for entry in content.backfill_runs),
        moves=[
            (change, sentence_of(change))
            for change in content.changes
            if change.level == "machine" and change.machine == fingerprint
        ],
        tables=[machine_table(view), version_table(view), run_table(with_folder)],
        false_alarms=[alarms for alarms in content.false_alarms if alarms.machine == fingerprint],
    )
