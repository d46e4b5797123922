"""Writing a run: `run.json` as a whole, and `records.jsonl` line by line. A kill loses one line at most."""

from __future__ import annotations

import os
from pathlib import Path

from rnnbench.content_digest import line_with_digest, text_with_digest
from rnnbench.disk import copy_of, is_json, open_own, write_with_copy
from rnnbench.results.compressed import RECORDS, restore_records
from rnnbench.results.reading import StoreError
from rnnbench.results.record import Record
from rnnbench.results.run_info import RunInfo
from rnnbench.results.text import visible

INFO = "run.json"
TRIALS = "trials.json"
"""The trials that a run was begun with. Not in a published run, nor in one that another program wrote."""
LONGEST_LINE = 16 << 20
"""Bytes of a record. One with a hundred checks and long reasons has some 100 KiB; what is longer is damaged."""
_PIECE = 1 << 16


def append_record(path: Path, record: Record) -> None:
    """Append one line to the run's `records.jsonl`, and return once it is on the disk. Removes a torn last line.

    A compressed file of records is restored first. Raises StoreError, also where the folder is no longer the run's:
    nobody would read the record.
    """
    if not any(map(os.path.lexists, (path / INFO, copy_of(path / INFO)))):
        raise StoreError(
            f"{path} was removed or renamed while its run was on, so {visible(record.trial)} has no record; give the "
            f"folder that has the {INFO} this name again, and go on with: rnnbench run --resume {path}"
        )
    line = line_with_digest(record.model_dump_json()) + b"\n"
    restore_records(path)
    try:
        descriptor = open_own(path / RECORDS, os.O_RDWR | os.O_APPEND)
        try:
            _mend_tail(descriptor)
            _append(descriptor, line)
        finally:
            os.close(descriptor)
    except OSError as error:
        raise unwritable(path, error) from error


def require_appendable(path: Path) -> None:
    """Raises StoreError where no record can be appended to the run. No trial is run in vain then."""
    records = path / RECORDS
    if not os.path.lexists(records):  # They are made, or restored, with the first record.
        return
    try:
        os.close(open_own(records, os.O_RDWR | os.O_APPEND))
    except OSError as error:
        raise unwritable(path, error) from error


def write_info(path: Path, info: RunInfo) -> None:
    """Write `run.json`, as a whole or not at all, and its copy."""
    try:
        write_with_copy(path / INFO, text_with_digest(info.model_dump_json()))
    except OSError as error:
        raise unwritable(path, error) from error


def unwritable(path: Path, error: OSError, option: str = "--results") -> StoreError:
    """Nothing can be written at `path`, which `option` names."""
    what = f"{error.filename} is not a folder" if isinstance(error, FileExistsError) else error.strerror or error
    return StoreError(
        f"cannot write to {path}: {what}; "
        f"make it writable (and see that its disk has room), or name another place with {option}"
    )


def _append(descriptor: int, line: bytes) -> None:
    """The whole line, on the disk, or nothing."""
    size, rest = os.fstat(descriptor).st_size, memoryview(line)
    try:
        while rest:
            rest = rest[os.write(descriptor, rest) :]
        os.fsync(descriptor)
    except BaseException:
        os.ftruncate(descriptor, size)
        raise


def _mend_tail(descriptor: int) -> None:
    """End the last line where it is complete and has no end; remove it where a kill tore it."""
    size = os.fstat(descriptor).st_size
    start = _after_last_newline(descriptor, size)
    if start == size:
        return
    if size - start <= LONGEST_LINE and is_json(os.pread(descriptor, size - start, start)):
        os.write(descriptor, b"\n")
    else:
        os.ftruncate(descriptor, start)


def _after_last_newline(descriptor: int, size: int) -> int:
    """Where the last line begins. Only one piece of the file is in memory at a time."""
    end = size
    while end:
        start = max(0, end - _PIECE)
        newline = os.pread(descriptor, end - start, start).rfind(b"\n")
        if newline >= 0:
            return start + newline + 1
        end = start
    return 0
