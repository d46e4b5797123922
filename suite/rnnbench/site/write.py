"""The whole site: every page in order, and no file of an earlier site left behind."""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

from rnnbench.disk import is_as_empty, is_disk_error
from rnnbench.history import Alerts, History
from rnnbench.locks import locked_folder
from rnnbench.results import Run, StoreError, unwritable
from rnnbench.site.alerts import write_alerts
from rnnbench.site.changes import change_rows
from rnnbench.site.chooser import write_chooser
from rnnbench.site.compare import write_compare
from rnnbench.site.conformance import write_conformance
from rnnbench.site.content import Content, read_content
from rnnbench.site.machines import write_machines
from rnnbench.site.method import write_method
from rnnbench.site.overview import INDEX, write_overview
from rnnbench.site.page import Folder
from rnnbench.site.releases import write_releases
from rnnbench.site.trial_page import write_trials

MARK = "rnnbench-site.txt"
"""A file that says that the folder is a site: only such a folder, or an empty one, is written to."""
MARK_TEXT = "Files of this folder are made by `rnnbench site`, which removes those that it no longer makes.\n"


def write_site(runs: Sequence[Run], history: History | None, root: Path, alerts: Alerts | None = None) -> Path:
    """Write the site into a folder and return its first page. Equal runs and histories give equal bytes.

    Raises StoreError where there is nothing to show, the folder has other files, or its disk is full.
    """
    content = read_content(runs, history, alerts)
    try:
        root.mkdir(parents=True, exist_ok=True)
        # Another command that writes it would take unfinished files for those of an earlier site.
        with locked_folder(root):
            _check(root, [run.path for run in runs], history, alerts)
            _write_files(content, history, Folder(root))
    except OSError as error:
        if is_disk_error(error) and Path(error.filename or "").is_relative_to(root):
            raise unwritable(root, error, "-o") from error
        raise
    return root / INDEX


def _write_files(content: Content, history: History | None, folder: Folder) -> None:
    folder.write(MARK, MARK_TEXT.encode())
    _copy_static(files("rnnbench.site") / "static", "static", folder)
    changes = change_rows(content)
    write_overview(content, folder, changes)
    write_chooser(content, folder)
    write_compare(content, folder)
    write_trials(content, folder)
    write_releases(content, history, folder)
    write_conformance(content, folder, changes)
    write_alerts(content, folder, changes)
    write_machines(content, folder)
    write_method(content, folder)
    _remove_others(folder)


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
    if not is_as_empty(root) and not (root / MARK).is_file():
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
