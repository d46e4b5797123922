"""The bytes of a file that somebody else made, within limits."""

from __future__ import annotations

import stat
from pathlib import Path

from rnnbench.model_files import limits
from rnnbench.model_files.errors import ModelFileError


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
    except (OSError, ValueError) as error:
        raise ModelFileError(f"it cannot be read: {getattr(error, 'strerror', None) or error}") from error
    if not data:
        raise ModelFileError("it is empty")
    if len(data) > there.st_size:
        raise ModelFileError("it grew while it was read")
    return data
