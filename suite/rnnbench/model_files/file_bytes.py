"""The bytes of a file that somebody else made, within limits."""

from __future__ import annotations

import stat
from pathlib import Path

from rnnbench.model_files import limits
from rnnbench.model_files.errors import ModelFileError
from rnnbench.spelling import absent

_STAND_INS = {
    b"version https://git-lfs": "it is a pointer of Git LFS, and not the file itself; `git lfs pull` brings that",
    b"<!doctype html": "it is a page of the web, and not the file itself; load the file that the page offers (raw)",
    b"<html": "it is a page of the web, and not the file itself; load the file that the page offers (raw)",
}
"""What lies where a file was meant to be, by its first bytes."""


def read_bytes(path: Path) -> bytes:
    """All bytes of a plain file of at most `limits.FILE_BYTES`. Raises ModelFileError."""
    try:
        there = path.stat()
        if stat.S_ISDIR(there.st_mode):
            raise ModelFileError("it is a folder; give the file in it")
        if not stat.S_ISREG(there.st_mode):
            raise ModelFileError("it is no plain file")
        if there.st_size > limits.FILE_BYTES:
            raise ModelFileError(
                f"it has {there.st_size:,} bytes; files up to {limits.FILE_BYTES >> 30} GiB are read, "
                "and weights may be in files beside it"
            )
        with path.open("rb") as file:
            data = file.read(there.st_size + 1)
    except FileNotFoundError as error:
        raise ModelFileError(absent(path)) from error
    except (OSError, ValueError) as error:
        raise ModelFileError(f"it cannot be read: {getattr(error, 'strerror', None) or error}") from error
    if not data:
        raise ModelFileError("it is empty")
    for start, what in _STAND_INS.items():
        if data[:64].lstrip().lower().startswith(start):
            raise ModelFileError(what)
    if len(data) > there.st_size:
        raise ModelFileError("it grew while it was read")
    return data
