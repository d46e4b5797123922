"""Runs on disk: `results/<run>/run.json` and `records.jsonl`, one record a line; a kill loses one line at most."""

from __future__ import annotations

import difflib
import json
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, ValidationError

from rnnbench.results.record import SCHEMA, Record
from rnnbench.results.run_info import RunInfo

INFO = "run.json"
RECORDS = "records.jsonl"
LATEST = "latest"
_NAMED_BY_TIME = re.compile(r"\d{8}T\d{6}Z-")
_LONGEST_NAME = 100
"""Characters of a run's name: file systems allow 255 bytes, and a name is read by people."""


M = TypeVar("M", bound=BaseModel)


class StoreError(Exception):
    """A run cannot be read or written. The message names the file or folder, what was wrong and what to do."""


@dataclass(frozen=True)
class Run:
    """One run as read back. Of several records of one trial (a resumed run) it has the last."""

    path: Path
    info: RunInfo
    records: tuple[Record, ...]
    warnings: tuple[str, ...] = ()
    """What was left out in reading: a line torn by a kill."""

    @property
    def name(self) -> str:
        return self.info.run

    @cached_property
    def by_trial(self) -> dict[str, Record]:
        return {record.trial: record for record in self.records}

    def measured(self, record: Record) -> Record | None:
        """The record with a trial's measurement: its own, or that of the trial it is `same_as`; None where absent."""
        return record if record.same_as is None else self.by_trial.get(record.same_as)


@dataclass(frozen=True)
class Store:
    """A folder of runs."""

    root: Path = Path("results")

    def new_run(self, cases: Sequence[str], started: datetime) -> Path:
        """Make the folder of a new run, `<UTC timestamp>-<case names>`; a name that is taken gets a number."""
        name = run_name(cases, started)
        number = 1
        while True:
            path = self.root / (name if number == 1 else f"{name}-{number}")
            try:
                self.root.mkdir(parents=True, exist_ok=True)
                path.mkdir()
            except FileExistsError as error:
                if not self.root.is_dir():
                    raise _unwritable(self.root, error) from error
                number += 1
            except OSError as error:
                raise _unwritable(self.root, error) from error
            else:
                return path

    def runs(self) -> list[Path]:
        """Every run in the folder that has its time in its name, oldest first."""
        if not self.root.is_dir():
            return []
        named = (path for path in self.root.iterdir() if _NAMED_BY_TIME.match(path.name))
        return sorted(path for path in named if (path / INFO).is_file())

    def resolve(self, run: str | Path) -> Path:
        """The folder of a run given as a path, as a name in this folder, or as `latest`. Raises StoreError."""
        if str(run) == LATEST:
            runs = self.runs()
            if not runs:
                raise StoreError(f"{self.root} holds no run yet: there is no latest; `rnnbench run CASE…` makes one")
            return runs[-1]
        candidates = [Path(run), self.root / run]
        for path in candidates:
            if (path / INFO).is_file():
                return path
        for path in candidates:
            if path.exists():
                raise _not_a_run(path)
        names = [path.name for path in self.runs()]
        close = difflib.get_close_matches(str(run), names, n=1, cutoff=0.5)
        hint = f"did you mean '{close[0]}'?" if close else "give a folder, a name in it, or 'latest'"
        raise StoreError(f"no run '{run}', here or in {self.root}; {hint}")

    def read(self, run: str | Path) -> Run:
        return read_run(self.resolve(run))


def run_name(cases: Sequence[str], started: datetime) -> str:
    """`20260131T120000Z-lstm_streaming+gru_streaming`; where that is long, the first case and how many more."""
    safe = [re.sub(r"[^\w.-]+", "_", case) for case in cases]
    joined = "+".join(safe)
    stamp = f"{started.astimezone(UTC):%Y%m%dT%H%M%SZ}-"
    if len(stamp) + len(joined) > _LONGEST_NAME:
        more = f"+{len(safe) - 1}_more" if len(safe) > 1 else ""
        joined = safe[0][: _LONGEST_NAME - len(stamp) - len(more)] + more
    return stamp + joined


def read_run(path: Path) -> Run:
    """Read a run's folder. A last line torn by a kill becomes a warning; any other bad line raises StoreError."""
    if not (path / INFO).is_file():
        raise _not_a_run(path)
    info = _parsed(RunInfo, _read_bytes(path / INFO), str(path / INFO))
    file = path / RECORDS
    if not file.exists():
        return Run(path, info, (), (f"{file}: missing; the run ended before its first trial did",))
    *lines, rest = _read_bytes(file).split(b"\n")
    records = [_parsed(Record, line, f"{file}:{number}") for number, line in enumerate(lines, 1)]
    warnings = []
    if _is_json(rest):
        records.append(_parsed(Record, rest, f"{file}:{len(lines) + 1}"))
    elif rest:
        warnings.append(
            f"{file}:{len(lines) + 1}: the last line is cut short after {len(rest)} bytes and was left out; "
            f"the run was killed while it wrote (`rnnbench run --resume` does that trial again)"
        )
    last = {record.trial: record for record in records}
    return Run(path, info, tuple(last.values()), tuple(warnings))


def append_record(path: Path, record: Record) -> None:
    """Append one line to the run's `records.jsonl`, and return once it is on the disk. Cuts off a torn last line."""
    line = record.model_dump_json().encode() + b"\n"
    try:
        with (path / RECORDS).open("a+b") as file:
            _mend_tail(file.fileno())
            file.write(line)
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise _unwritable(path, error) from error


def write_info(path: Path, info: RunInfo) -> None:
    """Write `run.json`, as a whole or not at all."""
    part = path / f".{INFO}.part"
    try:
        with part.open("w", encoding="utf-8") as file:
            file.write(info.model_dump_json(indent=2) + "\n")
            file.flush()
            os.fsync(file.fileno())
        part.replace(path / INFO)
    except OSError as error:
        raise _unwritable(path, error) from error


def _mend_tail(descriptor: int) -> None:
    """Give an unended last line its end where it is whole; cut it off where a kill tore it."""
    content = _after_last_newline(descriptor)
    if not content:
        return
    if _is_json(content):
        os.write(descriptor, b"\n")
    else:
        os.ftruncate(descriptor, os.fstat(descriptor).st_size - len(content))


def _after_last_newline(descriptor: int) -> bytes:
    size, tail = os.fstat(descriptor).st_size, b""
    while size and b"\n" not in tail:
        start = max(0, size - (1 << 16))
        tail = os.pread(descriptor, size - start, start) + tail
        size = start
    return tail.rpartition(b"\n")[2]


def _read_bytes(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        raise StoreError(f"{file}: cannot be read: {error.strerror or error}; check its permissions") from error


def _is_json(text: bytes) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


def _parsed(model: type[M], text: bytes, where: str) -> M:
    """`text` as a `model`, its schema's version looked at first: a field that moved says less than the version does."""
    try:
        content = json.loads(text)
    except ValueError as error:
        raise StoreError(f"{where}: not JSON: {error}; restore the file, or delete what is broken in it") from error
    if not isinstance(content, dict):
        raise StoreError(f"{where}: expected a JSON object, got {type(content).__name__}; is this rnnbench's file?")
    version = content.get("schema")
    if version != SCHEMA:
        raise StoreError(f"{where}: {_other_schema(version)}")
    try:
        return model.model_validate(content)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        field = ".".join(str(part) for part in first["loc"])
        raise StoreError(
            f"{where}: not a {model.__name__} of schema {SCHEMA}: {field}: {first['msg']}; "
            f"read it with the rnnbench that wrote it, or run again"
        ) from error


def _other_schema(version: object) -> str:
    if isinstance(version, int) and version > SCHEMA:
        return f"has schema {version}, and this rnnbench reads {SCHEMA}; upgrade rnnbench to read it"
    return f"has schema {version!r}, and this rnnbench reads {SCHEMA}; read it with the rnnbench that wrote it"


def _not_a_run(path: Path) -> StoreError:
    what = f"has no {INFO}" if path.is_dir() else "is not a folder" if path.exists() else "does not exist"
    return StoreError(f"{path} is not a run: it {what}; give a folder that `rnnbench run` made, its name, or 'latest'")


def _unwritable(path: Path, error: OSError) -> StoreError:
    return StoreError(
        f"cannot write results to {path}: {error.strerror or error}; "
        f"make it writable (and see that its disk has room), or choose another results folder"
    )
