"""The history's folder: runs are added to it once, and queried by SQL.

    runs/<run_id>.json       the run's entry
    rows/<run_id>.parquet    its rows, one for each trial
    comparisons/<run_id>.json   the verdicts of `rnnbench ab`, where it is the run of side b
    checks/<run_id>-<backend>.json   what `rnnbench check` found of one version of a backend

`records.jsonl` of the runs stays the truth: every file here can be made again by adding its run again.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Generic, Literal, TypeVar

from rnnbench.content_digest import intact, text_with_digest
from rnnbench.disk import read_cached, read_plain, write_bytes
from rnnbench.history.checks import CHECK_TYPES, CheckEntry, check_row, checks_of
from rnnbench.history.columns import ROW_TYPES, rows_of
from rnnbench.history.comparisons import VERDICT_TYPES, ComparisonEntry, comparison_of, verdict_rows
from rnnbench.history.database import PURPOSE, Arrays, Content, Database, Table
from rnnbench.history.entry import RUN_TYPES, SCHEMA, Entry, RunEntry, entry_of, run_id, run_row
from rnnbench.history.release_file import read_release
from rnnbench.locks import locked
from rnnbench.results import StoreError, data_frame, parquet, read_run, sound, unwritable, wrong_dates
from rnnbench.spelling import count, first_few

AnyEntry = TypeVar("AnyEntry", bound=Entry)
Added = Literal["added", "updated", "already there"]
LOCK = ".lock"
"""File in the history's folder whose lock a process holds while it adds."""


@dataclass(frozen=True)
class Addition:
    """What became of a run that was to be added."""

    entry: RunEntry
    what: Added
    warnings: tuple[str, ...]
    """What was left out: damaged lines, and figures that cannot be."""


@dataclass(frozen=True)
class _EntryFile(Generic[AnyEntry]):
    """An intact file of the history."""

    path: Path
    name: str
    """What the entry is of, for messages."""
    entry: AnyEntry


@dataclass(frozen=True)
class _Entries(Generic[AnyEntry]):
    """The entries of a folder."""

    used: tuple[AnyEntry, ...]
    """Oldest first."""
    warnings: tuple[str, ...]
    """What is not used, a sentence each for the first files."""

    @classmethod
    def of(cls, files: Iterable[_EntryFile[AnyEntry]], damaged: Sequence[str]) -> _Entries[AnyEntry]:
        """The entries of these files, without those that a wrong clock dated."""
        ordered = sorted(files, key=lambda file: (file.entry.started, file.path.stem))
        wrong = wrong_dates(file.entry.started for file in ordered)
        misdated = [_misdated(f.path, f.name, f.entry.started, wrong) for f in ordered if f.entry.started in wrong]
        warnings = (
            *first_few(damaged, lambda more: f"{count(more, 'more file')} of the history damaged, and skipped"),
            *first_few(misdated, lambda more: f"{count(more, 'more run')} of the history left out for a wrong date"),
        )
        return cls(tuple(f.entry for f in ordered if f.entry.started not in wrong), warnings)


@dataclass(frozen=True)
class History:
    """A folder with the rows of many runs. It is read once: make another History after adding."""

    root: Path

    def add(self, folder: Path) -> Addition:
        """Add the run in a folder. One that is there already stays, unless this one has more trials (it was resumed).

        A damaged line of its records is skipped and named. Safe where several processes add. Raises StoreError.
        """
        read = read_run(folder)
        (run,), impossible = sound((read,))
        release = read_release(folder)
        rows = parquet(ROW_TYPES, rows_of(run, run_id(run), release.ratios if release else {}), PURPOSE)
        entry = entry_of(run, hashlib.sha256(rows).hexdigest(), release and release.info)
        try:
            with self._locked():
                file = self._entry_file(entry.run_id)
                before = self._read_entry(file)
                if before is None and (newer := _of_newer(file)):
                    raise StoreError(newer)
                intact = before is not None and self._is_intact(before)
                if before is not None and intact and before.completeness >= entry.completeness:
                    return Addition(before, "already there", (*run.warnings, *impossible))
                write_bytes(self._rows_file(entry.run_id), rows)
                write_bytes(file, text_with_digest(entry.model_dump_json()))
        except OSError as error:
            raise unwritable(self.root, error, "--history") from error
        return Addition(entry, "updated" if before else "added", (*run.warnings, *impossible))

    def add_comparison(self, folder: Path) -> ComparisonEntry:
        """Keep the verdicts of the comparison whose side b is the run in a folder. Raises StoreError.

        Neither side becomes a night: what a comparison samples, it samples for its verdicts.
        """
        entry = comparison_of(read_run(folder))
        self._write("comparisons", entry)
        return entry

    def add_checks(self, folder: Path) -> tuple[CheckEntry, ...]:
        """Keep what a run of `rnnbench check` found, by backend. It becomes no night. Raises StoreError."""
        entries = checks_of(read_run(folder))
        for entry in entries:
            self._write("checks", entry)
        return entries

    def _write(self, folder: str, entry: Entry) -> None:
        file = self.root / folder / f"{entry.name}.json"
        try:
            with self._locked():
                if newer := _of_newer(file):
                    raise StoreError(newer)
                write_bytes(file, text_with_digest(entry.model_dump_json()))
        except OSError as error:
            raise unwritable(self.root, error, "--history") from error

    @cached_property
    def _read_checks(self) -> _Entries[CheckEntry]:
        return self._entries("checks", CheckEntry, "its check")

    @cached_property
    def checks(self) -> tuple[CheckEntry, ...]:
        """Oldest first."""
        return self._on_machines_now(self._read_checks.used)

    @cached_property
    def _read_comparisons(self) -> _Entries[ComparisonEntry]:
        return self._entries("comparisons", ComparisonEntry, "its comparison")

    def _entries(self, folder: str, kind: type[AnyEntry], what: str) -> _Entries[AnyEntry]:
        files: list[_EntryFile[AnyEntry]] = []
        damaged: list[str] = []
        for path in _entry_files(self.root / folder):
            entry = read_cached(path, lambda path: _entry_in(path, kind))
            if entry is None or entry.name != path.stem:
                damaged.append(
                    _of_newer(path) or f"{path}: damaged, and skipped; delete it, or add the run of {what} again"
                )
            else:
                files.append(_EntryFile(path, entry.name, entry))
        return _Entries.of(files, damaged)

    @cached_property
    def comparisons(self) -> tuple[ComparisonEntry, ...]:
        """Oldest first."""
        return self._on_machines_now(self._read_comparisons.used)

    @cached_property
    def _read_runs(self) -> _Entries[RunEntry]:
        entries = self._runs_now()
        lock = self.root / LOCK
        if entries.warnings and lock.exists():  # A process that adds a run writes its rows, and then its entry.
            with suppress(OSError), locked(lock, shared=True):
                return self._runs_now()
        return entries

    @cached_property
    def machines_now(self) -> Mapping[str, str]:
        """The fingerprints of earlier entries whose machine has another one by now, with that one.

        An earlier one that two machines share stays: nobody knows which of them it was.
        """
        found: dict[str, set[str]] = {}
        for entry in self._read_runs.used:
            if entry.machine_earlier not in (None, entry.machine):
                found.setdefault(str(entry.machine_earlier), set()).add(entry.machine)
        return {earlier: machines.pop() for earlier, machines in found.items() if len(machines) == 1}

    def _on_machines_now(self, entries: Sequence[AnyEntry]) -> tuple[AnyEntry, ...]:
        now = self.machines_now
        return tuple(e.model_copy(update={"machine": now[e.machine]}) if e.machine in now else e for e in entries)

    def _runs_now(self) -> _Entries[RunEntry]:
        """The runs as they lie there at this moment: also one whose rows another process has just replaced."""
        files: list[_EntryFile[RunEntry]] = []
        damaged: list[str] = []
        for path in _entry_files(self.root / "runs"):
            entry = self._read_entry(path)
            if entry is None:
                damaged.append(_of_newer(path) or f"{path}: damaged, and skipped; add its run again")
            elif not self._is_intact(entry):
                rows = self._rows_file(entry.run_id)
                damaged.append(f"{rows}: missing or damaged, and skipped; add the run {entry.run} again")
            else:
                files.append(_EntryFile(path, entry.run, entry))
        return _Entries.of(files, damaged)

    @cached_property
    def runs(self) -> tuple[RunEntry, ...]:
        """Oldest first."""
        return self._on_machines_now(self._read_runs.used)

    @property
    def nights(self) -> tuple[RunEntry, ...]:
        """The runs that are no backfill's, oldest first."""
        return tuple(entry for entry in self.runs if entry.release is None)

    @property
    def warnings(self) -> tuple[str, ...]:
        """The files that are damaged, or that a wrong clock dated, a sentence each."""
        return (*self._read_runs.warnings, *self._read_comparisons.warnings, *self._read_checks.warnings)

    def sql(self, statement: str) -> Table:
        """The result of one SELECT over the tables `rows`, `runs`, `verdicts` and `checks`. Raises StoreError."""
        return self._database.query(statement)

    def stream(self, statement: str) -> Iterator[tuple[Any, ...]]:
        """The rows of a result that may not fit in memory. Without ORDER BY, those of a run come together.

        No other statement may come before the last row.
        """
        return self._database.stream(statement)

    def arrays(self, statement: str) -> Arrays:
        """The same as an array for each column, for results of many rows. A NULL is masked."""
        return self._database.arrays(statement)

    def frame(self, statement: str = "SELECT * FROM rows ORDER BY started") -> Any:
        """The result as a DataFrame of pandas or Polars. Raises MissingExtraError where neither is installed."""
        table = self.sql(statement)
        return data_frame(table.columns, table.rows)

    @cached_property
    def _database(self) -> Database:
        return Database(self._files, ROW_TYPES, self._tables, {"machine": self.machines_now})

    @property
    def _files(self) -> list[Path]:
        return [self._rows_file(entry.run_id) for entry in self.runs]

    @property
    def _tables(self) -> dict[str, Content]:
        verdicts = [row for entry in self.comparisons for row in verdict_rows(entry)]
        return {
            "runs": (RUN_TYPES, [run_row(entry) for entry in self.runs]),
            "verdicts": (VERDICT_TYPES, verdicts),
            "checks": (CHECK_TYPES, [check_row(entry) for entry in self.checks]),
        }

    def _rows_file(self, identity: str) -> Path:
        return self.root / "rows" / f"{identity}.parquet"

    def _entry_file(self, identity: str) -> Path:
        return self.root / "runs" / f"{identity}.json"

    def _is_intact(self, entry: RunEntry) -> bool:
        file = self._rows_file(entry.run_id)
        return read_cached(file, lambda path: hashlib.sha256(read_plain(path)).hexdigest()) == entry.rows_sha256

    def _read_entry(self, file: Path) -> RunEntry | None:
        entry = read_cached(file, lambda path: _entry_in(path, RunEntry))
        return entry if entry is not None and entry.name == file.stem else None

    def _locked(self) -> AbstractContextManager[None]:
        """The folder, while no other process adds to it."""
        return locked(self.root / LOCK)


def _entry_files(folder: Path) -> list[Path]:
    """The files of entries. Raises StoreError where the folder cannot be read: it would pass for an empty one."""
    try:
        return sorted(path for path in folder.iterdir() if path.suffix == ".json")
    except FileNotFoundError:
        return []
    except OSError as error:
        what = error.strerror or error
        raise StoreError(f"{folder}: cannot be read: {what}; see what lies there, and its permissions") from error


def _entry_in(path: Path, kind: type[AnyEntry]) -> AnyEntry:
    """The entry in a file. Raises OSError, and ValueError also where it is not as it was written."""
    content = json.loads(intact(read_plain(path)))
    if isinstance(content, dict):
        content.pop("sha256", None)  # The digest that an earlier rnnbench wrote, of another form.
    return kind.model_validate_json(json.dumps(content))


def _of_newer(file: Path) -> str:
    """A sentence about an entry that a newer rnnbench wrote; empty for any other. It is not damaged, and stays."""
    content = read_cached(file, lambda path: json.loads(read_plain(path)))
    schema = content.get("schema_version") if isinstance(content, dict) else None
    if not isinstance(schema, int) or schema <= SCHEMA:
        return ""
    return (
        f"{file}: skipped: it has schema {schema}, and this rnnbench reads schemas up to {SCHEMA}; upgrade rnnbench to "
        f"read it"
    )


def _misdated(file: Path, name: str, started: str, wrong: Mapping[str, str]) -> str:
    """Why an entry is left out: its place among the others is not known."""
    return (
        f"{file}: {name} is dated {started} UTC, {wrong[started]}, and is left out; if a clock was wrong, "
        f"delete this file, correct `started` in the run's run.json, and add the run again"
    )
