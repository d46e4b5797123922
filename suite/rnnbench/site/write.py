"""The whole site: every page in order, and no file of an earlier site left behind."""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence
from dataclasses import replace
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

from rnnbench.history import Alerts, Change, History, MachineAlarms
from rnnbench.reports import Table, machine_table, run_table, version_table
from rnnbench.results import Run, StoreError
from rnnbench.site.alerts import MOST, AlertRow, alerts_of, decisions, last_week, still_open
from rnnbench.site.chooser import write_chooser
from rnnbench.site.compare import write_compare
from rnnbench.site.conformance import conformance_of, write_conformance
from rnnbench.site.content import Content, Machine, read_content
from rnnbench.site.fastest import STEPS, heat_maps
from rnnbench.site.method import write_method
from rnnbench.site.nights import Night
from rnnbench.site.page import Folder
from rnnbench.site.releases import backfills_of, write_releases
from rnnbench.site.stored_runs import StoredRun
from rnnbench.site.trial_page import write_trials

INDEX = "index.html"
MARK = "rnnbench-site.txt"
"""A file that says that the folder is a site: only such a folder, or an empty one, is written to."""
MARK_TEXT = "Files of this folder are made by `rnnbench site`, which removes those that it no longer makes.\n"


def write_site(runs: Sequence[Run], history: History | None, root: Path, alerts: Alerts | None = None) -> Path:
    """Write the site into a folder and return its first page. Equal runs and histories give equal bytes.

    Raises StoreError where there is nothing to show, or the folder has other files.
    """
    content = read_content(runs, history, alerts)
    _check(root, [run.path for run in runs], history, alerts)
    folder = Folder(root)
    folder.write(MARK, MARK_TEXT.encode())
    _copy_static(files("rnnbench.site") / "static", "static", folder)
    news = alerts_of(content)
    _write_overview(content, folder, news)
    write_chooser(content, folder)
    write_compare(content, folder)
    write_trials(content, folder)
    write_releases(content, history, folder)
    write_conformance(content, folder, news)
    shown = {"alerts": news[:MOST], "all_alerts": len(news), "decisions": decisions(content)}
    folder.page("alerts.html", "alerts.html", content=content, **shown)
    _write_machines(content, folder)
    write_method(content, folder)
    _remove_others(folder)
    return root / INDEX


def _write_overview(content: Content, folder: Folder, alerts: list[AlertRow]) -> None:
    folder.page(
        INDEX,
        "overview.html",
        content=content,
        moved=last_week(content, alerts),
        alerts=alerts,
        still_open=still_open(content),
        conformance=conformance_of(content),
        backfills=backfills_of(content),
        maps=heat_maps(content),
        steps=STEPS,
    )


def _write_machines(content: Content, folder: Folder) -> None:
    """A section for each machine and interpreter. The first of a fingerprint has its anchor."""
    first = {machine.fingerprint: machine for machine in reversed(content.all_machines)}
    folder.page(
        "machines.html",
        "machines.html",
        content=content,
        other_machines=_other_machines(content),
        machines=[
            (machine, machine is first[machine.fingerprint], *_told(machine, content))
            for machine in content.all_machines
        ],
    )


def _told(
    machine: Machine, content: Content
) -> tuple[list[Night], int, list[Change], list[Table], list[MachineAlarms]]:
    """Nights, number of backfill runs, moves, tables and false alarms of one machine."""
    nights = [night for night in content.nights if night.entry.machine == machine.fingerprint]
    moves = [c for c in content.changes if c.level == "machine" and c.machine == machine.fingerprint]
    backfills = sum(entry.machine == machine.fingerprint for entry in content.backfill_runs)
    view = machine.view
    folders = replace(view, runs=tuple(run for run in view.runs if not isinstance(run, StoredRun)))
    alarms = [alarms for alarms in content.false_alarms if alarms.machine == machine.fingerprint]
    return nights, backfills, moves, [machine_table(view), version_table(view), run_table(folders)], alarms


def _other_machines(content: Content) -> list[MachineAlarms]:
    """A/A comparisons of machines that no run shown was made on."""
    shown = {machine.fingerprint for machine in content.all_machines}
    return [alarms for alarms in content.false_alarms if alarms.machine not in shown]


def _copy_static(source: Traversable, path: str, folder: Folder) -> None:
    for entry in sorted(source.iterdir(), key=lambda entry: entry.name):
        if entry.is_dir():
            _copy_static(entry, f"{path}/{entry.name}", folder)
        else:
            folder.write(f"{path}/{entry.name}", entry.read_bytes())


def _check(root: Path, runs: Sequence[Path], history: History | None, alerts: Alerts | None) -> None:
    real = os.path.realpath(root)
    for path in (*runs, *([history.root] if history else []), *([alerts.file] if alerts else [])):
        if Path(os.path.realpath(path)).is_relative_to(real):
            raise StoreError(f"{root} has {path} in it, which the site is made of; give a folder of its own with -o")
    if root.is_dir() and any(root.iterdir()) and not (root / MARK).is_file():
        raise StoreError(f"{root} has files that are no site; give an empty folder, or one that `rnnbench site` made")


def _remove_others(folder: Folder) -> None:
    """Remove pages and data of an earlier site."""
    endings = {Path(path).suffix for path in folder.written if path != MARK} - {""}
    for file in sorted(folder.root.rglob("*"), reverse=True):
        path = file.relative_to(folder.root)
        if file.is_dir() and not file.is_symlink():
            if not _is_hidden(path) and not any(file.iterdir()):
                file.rmdir()
        elif path.as_posix() not in folder.written and _is_of_a_site(path, endings):
            file.unlink()


def _is_of_a_site(path: Path, endings: Collection[str]) -> bool:
    """Whether a file that this site does not have is of an earlier one: by its ending, and no hidden name.

    Where one was killed while it was made, a part of a file is left.
    """
    if _is_hidden(path.parent):
        return False
    return path.suffix == ".part" if _is_hidden(path) else path.suffix in endings


def _is_hidden(path: Path) -> bool:
    """Whether a part of the path is."""
    return any(part.startswith(".") for part in path.parts)
