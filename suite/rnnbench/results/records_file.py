"""Reading the records of a run, compressed or not: lines that are no records are left out, and named."""

from __future__ import annotations

import gc
import io
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, NamedTuple

from rnnbench.disk import is_disk_error, is_json, open_plain
from rnnbench.results.compressed import COMPRESSED, RECORDS, Decompressed
from rnnbench.results.frozen_model import share_field_sets
from rnnbench.results.journal import LONGEST_LINE
from rnnbench.results.reading import DamagedError, Reader, StoreError
from rnnbench.results.record import Record
from rnnbench.results.run import Run
from rnnbench.results.run_info import RunInfo
from rnnbench.spelling import count, first_few

Keep = Callable[[Record], Record]
MOST_DAMAGED = 20_000
"""Damaged lines after which a file is read no further. A file of a gigabyte of line ends would take hours."""
MOST_SKIPPED = 1 << 30
"""Bytes of damaged lines, and of further lines of one trial, after which a file is read no further.

A small compressed file may have one line of terabytes, or thousands of gigabytes.
"""
_LEFT_OUT = "the line was left out (`rnnbench run --resume` does its trial again)"


def with_records(path: Path, info: RunInfo, warnings: tuple[str, ...], keep: Keep | None) -> Run:
    """The run of a folder whose `run.json` was read, with its records. Raises StoreError where they cannot be read."""
    opened = _open_records(path)
    if opened is None:
        file = path / RECORDS
        missing = f"{file}: missing; the run ended before its first trial did"
        return Run(path, info, (), (*warnings, *(_lost(file, info, 0) or (missing,))))
    file, stream = opened
    reader = Reader(str(file), seed=info.seed)
    read = _read_compressed if file.name == COMPRESSED else _read_records
    try:
        with stream, _without_collection():
            records, torn, unread = read(stream, reader, keep)
    except OSError as error:
        raise unreadable(file, error) from error
    told = (*warnings, *reader.warnings(), *(torn or _lost(file, info, len(records))))
    return Run(path, info, tuple(records.values()), told, unread=unread)


def _open_records(path: Path) -> tuple[Path, BinaryIO] | None:
    """The file of a run's records, opened; None where there is none. Raises StoreError.

    Another process may compress or restore them just now: a file goes once the other one is there.
    """
    for name in (RECORDS, COMPRESSED, RECORDS):
        file = path / name
        try:
            return file, open_plain(file)
        except OSError as error:
            if os.path.islink(file) or not isinstance(error, FileNotFoundError):
                raise unreadable(file, error) from error
    return None


class _Read(NamedTuple):
    """What was read of a file of records."""

    records: dict[str, Record]
    """The last record of each trial."""
    left_out: tuple[str, ...]
    unread: str = ""
    """As in `Run`."""


def _read_compressed(file: BinaryIO, reader: Reader, keep: Keep | None) -> _Read:
    content = Decompressed(file)
    read = _read_records(io.BufferedReader(content), reader, keep)
    if content.damage:
        damage = f"{reader.file}: damaged: {content.damage}; what follows the damage was left out; restore the file"
        return read._replace(left_out=(damage, *read.left_out), unread=damage)
    return read


def _read_records(stream: BinaryIO, reader: Reader, keep: Keep | None) -> _Read:
    """One line is in memory at a time, LONGEST_LINE of it."""
    records: dict[str, Record] = {}
    damaged: list[str] = []
    number = skipped = 0
    while line := stream.readline(LONGEST_LINE):
        number += 1
        if len(damaged) == MOST_DAMAGED or skipped > MOST_SKIPPED:
            return _hopeless(records, damaged, reader.file, number)
        if not line.endswith(b"\n") and not is_json(line):
            length, is_last = _rest_of_line(stream, len(line))
            skipped += length
            if skipped > MOST_SKIPPED:
                return _hopeless(records, damaged, reader.file, number)
            damaged.append(_torn(reader.file, number, length) if is_last else _too_long(reader.file, number, length))
            continue
        try:
            record = reader.parse_record(line.removesuffix(b"\n"), number)
        except DamagedError as error:
            skipped += len(line)
            damaged.append(f"{error}; {_LEFT_OUT}")
        else:
            skipped += len(line) if record.trial in records else 0
            records[record.trial] = kept = keep(record) if keep else record
            share_field_sets(kept)
    return _Read(records, _first(damaged, reader.file))


@contextmanager
def _without_collection() -> Iterator[None]:
    """No garbage collection: records have no cycles, and a search for cycles takes as long as reading the records."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _rest_of_line(stream: BinaryIO, length: int) -> tuple[int, bool]:
    """Read on to the end of a line of which `length` bytes are read, or until MOST_SKIPPED bytes of it are read.

    Returns the bytes that were read of it, and whether the file ends in it.
    """
    while length <= MOST_SKIPPED and (more := stream.readline(LONGEST_LINE)):
        length += len(more)
        if more.endswith(b"\n"):
            return length, False
    return length, True


def _first(damaged: Sequence[str], file: str) -> tuple[str, ...]:
    """The first lines that were left out, and how many more there are."""
    return first_few(damaged, lambda more: f"{file}: {count(more, 'more damaged line')} left out")


def _hopeless(records: dict[str, Record], damaged: Sequence[str], file: str, line: int) -> _Read:
    unread = (
        f"{file}:{line}: the file is no file of records; this line and all that follow were left out; restore the file"
    )
    return _Read(records, (*_first(damaged, file), unread), unread)


def _too_long(file: str, line: int, length: int) -> str:
    return f"{file}:{line}: a line of {length} bytes is no record (they have up to {LONGEST_LINE}); {_LEFT_OUT}"


def _torn(file: str, line: int, length: int) -> str:
    return (
        f"{file}:{line}: the last line is cut short after {length} bytes and was left out; "
        f"the run was killed while it wrote (`rnnbench run --resume` does that trial again)"
    )


def _lost(file: Path, info: RunInfo, found: int) -> tuple[str, ...]:
    """A sentence where records are gone: a file that was emptied, or cut between two lines, has no damaged line."""
    if info.records is None or found >= info.records:
        return ()
    return (
        f"{file}: has records of {found} trials, and the run ended with {info.records}; restore the file "
        f"(`rnnbench run --resume` does the other trials again)",
    )


def unreadable(file: Path, error: OSError) -> StoreError:
    what_to_do = "its disk is broken; restore it" if is_disk_error(error) else "check its permissions"
    return StoreError(f"{file}: cannot be read: {error.strerror or error}; {what_to_do}")
