"""Runs on disk: finding a run's folder, making one, and reading it. `records_file` reads its records."""

from __future__ import annotations

import errno
import itertools
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from rnnbench.content_digest import EDITED, without_digest
from rnnbench.disk import copy_of, read_or_copy, unfinished
from rnnbench.results.dates import wrong_dates
from rnnbench.results.journal import INFO, unwritable, write_info
from rnnbench.results.merged_run import read_merged
from rnnbench.results.migrations import upgrade_info
from rnnbench.results.reading import Reader, StoreError
from rnnbench.results.records_file import Keep, unreadable, with_records
from rnnbench.results.run import Run
from rnnbench.results.run_info import RunInfo
from rnnbench.results.text import visible
from rnnbench.spelling import did_you_mean

LATEST = "latest"
_NAMED_BY_TIME = re.compile(r"\d{8}T\d{6}Z-")
BEGUN = ".begun"
BEFORE = ".before"
"""Ends the hidden name of a run that `rnnbench merge` is replacing."""
_BEGUN = re.compile(rf"\.run-\d+-\d+{re.escape(BEGUN)}")
_LONGEST_NAME = 100
"""Characters of a run's name: a name is read by people."""
_LONGEST_NAME_BYTES = 200
"""UTF-8 bytes of it: file systems allow 255, and a number may follow."""


@dataclass(frozen=True)
class Store:
    """A folder of runs."""

    root: Path = Path("results")

    def begin_folder(self) -> Path:
        """A hidden folder in which the files of a new run are written, until `put_run`. Raises StoreError."""
        for number in itertools.count(1):
            path = self.root / f".run-{os.getpid()}-{number}{BEGUN}"
            try:
                self.root.mkdir(parents=True, exist_ok=True)
                path.mkdir()
            except FileExistsError as error:
                if not self.root.is_dir():
                    raise unwritable(self.root, error) from error
            except OSError as error:
                raise unwritable(self.root, error) from error
            else:
                return path
        raise AssertionError("numbers do not end")

    def put_run(self, begun: Path, name: str, info: RunInfo) -> Path:
        """Write `run.json` into such a folder, and give it its name; one that is taken gets a number.

        Returns the run's folder: it is there as a whole or not at all. Raises StoreError.
        """
        for number in itertools.count(1):
            path = self.root / (name if number == 1 else f"{name}-{number}")
            if os.path.lexists(path):
                continue
            write_info(begun, info.model_copy(update={"run": path.name}))
            try:
                begun.rename(path)
            except OSError as error:
                if not os.path.lexists(path):  # Another process took the name.
                    raise unwritable(self.root, error) from error
            else:
                return path
        raise AssertionError("numbers do not end")

    def begun(self) -> list[Path]:
        """The folders of `begin_folder` that are there: of runs that begin now, and of those that were killed then."""
        with suppress(OSError):
            return [path for path in self.root.iterdir() if _BEGUN.fullmatch(path.name)]
        return []

    def runs(self) -> list[Path]:
        """Every run in the folder that has its time in its name, oldest first."""
        if not self.root.is_dir():
            return []
        named = (path for path in self.root.iterdir() if _NAMED_BY_TIME.match(path.name))
        return sorted(path for path in named if _has_info(path))

    def resolve(self, run: str | Path) -> Path:
        """The folder of a run given as a path, as a name in this folder, or as `latest`. Raises StoreError."""
        if str(run) == LATEST:
            if not (runs := self._well_dated()):
                if hidden := self.left_out(LATEST):
                    raise StoreError(f"no run is the latest: {hidden[0]}")
                raise StoreError(
                    f"{self.root} has no run with a name that `rnnbench run` gives, so none is the latest; run a case, "
                    f"name the run, or give another folder of runs with --results"
                )
            return runs[-1]
        if run == "":
            raise StoreError("the name of a run is empty; give a run's folder, its name, or 'latest'")
        candidates = [Path(run), self.root / run]
        for path in candidates:
            if _has_info(path):
                return path
        for path in candidates:
            if os.path.exists(path) or _replaced_at(path):
                raise _not_a_run(path)
        here = [path.name for path in _paths_of_runs(self.root)]
        near = did_you_mean(str(run), [LATEST, *here, *map(str, _paths_of_runs(Path(run).parent))])
        advice = near or f"give a run's folder, its name in {self.root}, or 'latest'"
        raise StoreError(f"no run '{run}', here or in {self.root}; {advice}")

    def read(self, run: str | Path, keep: Keep | None = None) -> Run:
        contents = read_run(self.resolve(run), keep)
        return replace(contents, warnings=(*contents.warnings, *self.left_out(run)))

    def left_out(self, run: str | Path) -> tuple[str, ...]:
        """A sentence for each run that is not taken for `latest` because a wrong clock dated it."""
        if str(run) != LATEST:
            return ()
        runs = self.runs()
        wrong = wrong_dates(map(_time_in, runs))
        misdated = (
            f"{path}: dated {wrong[_time_in(path)]}, so it is not taken for the latest run; if a clock was wrong, name "
            f"this run itself, or rename its folder"
            for path in runs
            if _time_in(path) in wrong
        )
        places = tuple(_hidden_beginning(path) for path in runs)
        hidden = (path for path in _hidden_runs(self.root) if not path.name.startswith(places))
        return (*misdated, *map(_was_replaced, hidden), *self._unreadable())

    def _unreadable(self) -> Iterator[str]:
        """A sentence for each folder with the name of a run that this user may not read."""
        for path in sorted(self.root.iterdir()) if self.root.is_dir() else ():
            if _NAMED_BY_TIME.match(path.name) and path.is_dir() and not os.access(path, os.R_OK | os.X_OK):
                yield f"{path}: may not be read, so it is not taken for the latest run; see its permissions"

    def _well_dated(self) -> list[Path]:
        """`runs`, without those that a wrong clock dated: one of the future would stay the latest for as long."""
        runs = self.runs()
        wrong = wrong_dates(map(_time_in, runs))
        return [path for path in runs if _time_in(path) not in wrong]


def _has_info(folder: Path) -> bool:
    """Whether a folder has a `run.json`, as far as this user may see.

    Where one may not look, and for a name that is too long to be one, `Path.is_file` raises an error.
    """
    return os.path.isfile(folder / INFO)


def _time_in(run: Path) -> str:
    """The time in a name that `run_name` gave."""
    return run.name.partition("-")[0]


def _paths_of_runs(folder: Path) -> list[Path]:
    """The paths of all runs in a folder, whatever they are called."""
    with suppress(OSError, ValueError):
        return [path for path in folder.iterdir() if _has_info(path)]
    return []


def _hidden_runs(folder: Path) -> list[Path]:
    """Runs that `rnnbench merge` was replacing when it was killed, or is replacing now."""
    return [path for path in _paths_of_runs(folder) if path.name.endswith(BEFORE)]


def _hidden_beginning(path: Path) -> str:
    """How the name begins that a run of this path has meanwhile."""
    return unfinished(path, "").name


def _replaced_at(path: Path) -> Path | None:
    """The run that was replaced at a path where there is none."""
    if not path.name or os.path.lexists(path):
        return None
    return next((run for run in _hidden_runs(path.parent) if run.name.startswith(_hidden_beginning(path))), None)


def _was_replaced(hidden: Path) -> str:
    return f"{hidden}: a run that `rnnbench merge` was replacing when it was killed; give this folder its name again"


def run_name(cases: Sequence[str], started: datetime, ending: str = "") -> str:
    """`20260131T120000Z-lstm_streaming+gru_streaming`; where that is long, the first case and how many more."""
    safe = [re.sub(r"[^\w.-]+", "_", case) for case in cases]
    joined = "+".join(safe)
    stamp = f"{started.astimezone(UTC):%Y%m%dT%H%M%SZ}-"
    longest, longest_bytes = _LONGEST_NAME - len(stamp) - len(ending), _LONGEST_NAME_BYTES - len(ending)
    if len(joined) > longest or len(joined.encode()) > longest_bytes:
        more = f"+{len(safe) - 1}_more" if len(safe) > 1 else ""
        characters = safe[0][: longest - len(more)]
        joined = characters.encode()[:longest_bytes].decode(errors="ignore") + more
    return f"{stamp}{joined}{ending}"


def read_run(folder: str | Path, keep: Keep | None = None) -> Run:
    """Read a run's folder, or that of merged shards; records of an older schema are upgraded.

    `keep` makes of each record what is kept of it, for commands that need little of many.

    Lines that are no records become warnings, and so do fields that a newer rnnbench wrote. Raises StoreError where
    `run.json` cannot be read, and for records of a newer schema.
    """
    path = Path(folder)
    info, warnings = read_info(path)
    if info.merged is None:
        return with_records(path, info, warnings, keep)

    def read_shard(part: Path) -> Run:
        return with_records(part, *read_info(part), keep)

    return read_merged(path, info, warnings, info.merged, read_shard)


def read_info(path: Path) -> tuple[RunInfo, tuple[str, ...]]:
    """The `run.json` of a run, and what was left out of it. Raises StoreError."""
    file = path / INFO
    if not _has_info(path):
        raise _not_a_run(path)
    try:
        content, why_copy = read_or_copy(file)
    except OSError as error:
        raise unreadable(file, error) from error
    reader = Reader(str(file))
    content, is_as_written = without_digest(content)
    info = reader.parse(RunInfo, upgrade_info, content)
    torn = [f"{why_copy}, which may be older"] if why_copy else []
    changed = [] if is_as_written else [f"{file}: {EDITED}"]
    edited = [_edited(file, info.edited)] if info.edited else []
    return info, (*torn, *changed, *edited, *reader.warnings())


def _edited(file: Path, packages: Sequence[str]) -> str:
    names = ", ".join(map(visible, packages))
    return f"{file}: files of {names} changed while the run was on: its trials may be of two states of these"


def _not_a_run(path: Path) -> StoreError:
    if path.is_dir() and not os.access(path, os.R_OK | os.X_OK):
        return unreadable(path, PermissionError(errno.EACCES, os.strerror(errno.EACCES)))
    if hidden := _replaced_at(path):
        return StoreError(f"there is no run {path}; {_was_replaced(hidden)}")
    if os.path.isfile(copy := copy_of(path / INFO)):
        return StoreError(
            f"{path}: has no {INFO} that can be read; move what lies there, and copy {copy.name} to {INFO}"
        )
    what = f"has no {INFO}" if path.is_dir() else "is not a folder" if path.exists() else "does not exist"
    return StoreError(f"{path} is not a run: it {what}; give a folder that `rnnbench run` made, its name, or 'latest'")
