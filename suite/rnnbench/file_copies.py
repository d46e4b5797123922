"""Copies of files: whole, and verified by their size and digest."""

from __future__ import annotations

import errno
import hashlib
import shutil
from pathlib import Path
from typing import BinaryIO, NamedTuple

from rnnbench.disk import open_plain, write_whole

_PIECE = 1 << 20
"""Bytes that are copied at once."""
_NO_PLAIN_FILE = frozenset({errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.ELOOP, errno.ENOTSUP})
"""Errors of opening what is no plain file."""


class Content(NamedTuple):
    """What is known of a file."""

    nbytes: int
    sha256: str


class DamagedError(ValueError):
    """A file does not have the expected content."""


def copy(source: Path, target: Path) -> Content:
    """Copy a file, with its mode and times. Returns what was copied. Raises OSError, with the file at fault."""
    content = Content(0, "")

    def write(file: BinaryIO) -> None:
        nonlocal content
        with source.open("rb") as original:
            content = _copied(original, source, file)

    write_whole(target, write)
    shutil.copystat(source, target)
    return content


def copy_verified(source: Path, target: Path, content: Content) -> None:
    """As `copy`, and nothing is in the target where it is not that content. Raises OSError and DamagedError."""
    try:
        original = open_plain(source)
    except OSError as error:
        if error.errno in _NO_PLAIN_FILE:
            raise DamagedError(f"{source} is missing, or no plain file") from error
        raise

    def write(file: BinaryIO) -> None:
        if _copied(original, source, file) != content:
            raise DamagedError(f"{source} does not have the expected content")

    with original:
        write_whole(target, write)
    shutil.copystat(source, target)


def read_content(path: Path) -> Content:
    """The size and the digest of a file. Raises OSError, also for what is no plain file."""
    digest, nbytes = hashlib.sha256(), 0
    with open_plain(path) as file:
        while piece := file.read(_PIECE):
            digest.update(piece)
            nbytes += len(piece)
    return Content(nbytes, digest.hexdigest())


def _piece(original: BinaryIO, source: Path) -> bytes:
    """The next bytes. The error of a broken disk names the file that was read, and not the one that is written."""
    try:
        return original.read(_PIECE)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(source)) from error


def _copied(original: BinaryIO, source: Path, file: BinaryIO) -> Content:
    digest, nbytes = hashlib.sha256(), 0
    while piece := _piece(original, source):
        digest.update(piece)
        nbytes += file.write(piece)
    return Content(nbytes, digest.hexdigest())
