"""The bytes of a file that somebody else made: read within limits, and recognised by their digest."""

from __future__ import annotations

import hashlib
import stat
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from io import BufferedReader
from pathlib import Path

from rnnbench.disk import open_plain
from rnnbench.model_files import limits
from rnnbench.model_files.errors import ModelFileError, parsing
from rnnbench.outside_text import safe_text
from rnnbench.spelling import absent

_STAND_INS = {
    b"version https://git-lfs": "it is a pointer of Git LFS, and not the file itself; `git lfs pull` brings that",
    b"<!doctype html": "it is a page of the web, and not the file itself; load the file that the page offers (raw)",
    b"<html": "it is a page of the web, and not the file itself; load the file that the page offers (raw)",
}
"""What lies where a file was meant to be, by its first bytes."""
_PICKLE = "it is a pickle, which can run any program when it is loaded, so it is not read; export the network to ONNX"
_KERAS = (".keras", ".h5", ".hdf5")
_KINDS: tuple[tuple[int, bytes, tuple[str, ...], str], ...] = (
    (4, b"TFL3", (".tflite",), "it is a TFLite file by its first bytes; call it .tflite"),
    (4, b"ORTM", (), "it is a file of ONNX Runtime (.ort) by its first bytes; give the .onnx file that it was made of"),
    (0, b"\x89HDF\r\n", _KERAS, "it is a file of HDF5 by its first bytes; if Keras wrote it, call it .h5"),
    (
        0,
        b"PK\x03\x04",
        (*_KERAS, ".pt2"),
        "it is a zip by its first bytes, as .keras and .pt2 files are; call it so, or unpack it",
    ),
    (0, b"\x1f\x8b", (), "it is packed by gzip; unpack it, and give the model file in it"),
    (0, b"GGUF", (), "it is a file of GGUF by its first bytes, which has weights and no program; export the network"),
    *((0, bytes((0x80, protocol)), (), _PICKLE) for protocol in range(2, 6)),
)
"""Files of other kinds: where their first bytes have which letters, the suffixes of such files, and what to do."""
_BEGINNING = 64
"""Bytes at the beginning of a file that say so."""


def require_whole(path: Path) -> None:
    """Raises ModelFileError for what is certainly no model file, before a format imports the packages that read it."""
    with _opened(path) as (file, _):
        beginning, suffix = file.read(_BEGINNING), path.suffix.lower()
    for place, letters, suffixes, what in _KINDS:
        if beginning[place:].startswith(letters) and suffix not in suffixes:
            raise ModelFileError(what)


def read_bytes(path: Path) -> bytes:
    """All bytes of a plain file of at most `limits.FILE_BYTES`. Raises ModelFileError."""
    with _opened(path) as (file, size):
        data = file.read(size + 1)
    if len(data) > size:
        raise ModelFileError("it grew while it was read")
    return data


@contextmanager
def _opened(path: Path) -> Iterator[tuple[BufferedReader, int]]:
    """A plain file that has something, at its beginning, and its size in bytes. Raises ModelFileError."""
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
            _require_no_stand_in(file.read(_BEGINNING))
            file.seek(0)
            yield file, there.st_size
    except FileNotFoundError as error:
        raise ModelFileError(absent(path)) from error
    except (OSError, ValueError) as error:
        raise ModelFileError(f"it cannot be read: {getattr(error, 'strerror', None) or error}") from error


def _require_no_stand_in(beginning: bytes) -> None:
    if not beginning:
        raise ModelFileError("it is empty")
    for start, what in _STAND_INS.items():
        if beginning.lstrip().lower().startswith(start):
            raise ModelFileError(what)


def unpacked(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> bytes:
    """The bytes of an entry, and no more of them than the archive says. Raises ModelFileError."""
    with parsing(f"its {safe_text(entry.filename, 120)} is damaged"), archive.open(entry) as stream:
        return stream.read(entry.file_size + 1)


def digest_of(path: Path, external: Sequence[str]) -> str:
    """SHA-256 of a file and of the files beside it that have its weights. Raises ModelFileError."""
    digest = hashlib.sha256()
    for file_path in (path, *(path.parent / name for name in external)):
        try:
            with open_plain(file_path) as file:
                digest.update(hashlib.file_digest(file, "sha256").digest())
        except OSError as error:
            raise ModelFileError(f"{safe_text(file_path.name, 200)} cannot be read: {error.strerror}") from error
    return digest.hexdigest()


def require_unchanged(path: Path, sha256: str, external: Sequence[str]) -> None:
    """Raises ModelFileError where `digest_of` is another one than it was when the case was read."""
    if digest_of(path, external) != sha256:
        raise ModelFileError(f"{path} has changed since the case was read; run the command again")
