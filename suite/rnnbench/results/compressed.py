"""`records.jsonl.zst`: the records of a run that has ended, compressed with zstd. Damage is named, and loses no file.

The frame has its length and a checksum, so that a file that was cut or changed is known as such. While both files are
there, `records.jsonl` is the truth: the other is not finished yet, or not needed any more.
"""

from __future__ import annotations

import io
import shutil
from pathlib import Path
from typing import Any, BinaryIO

from rnnbench.disk import open_plain, write_bytes, write_whole
from rnnbench.optional import require
from rnnbench.results.reading import StoreError

RECORDS = "records.jsonl"
COMPRESSED = "records.jsonl.zst"
LEVEL = 12
"""Level 19 is 10 % smaller, and takes more than ten times as long."""
LONGEST_HEADER = 18
"""Bytes of the header of a frame (RFC 8878)."""
LONGEST = 1 << 60
"""Bytes beyond which a length means that there is none. zstd writes it so where it compresses a stream."""
LARGEST_WINDOW = 1 << 27
"""Bytes that a reader may be asked to hold."""


class Decompressed(io.RawIOBase):
    """The content of a compressed file. It ends where the file is damaged, and `damage` says how."""

    def __init__(self, file: BinaryIO) -> None:
        self._zstd = _zstandard()
        self.damage = ""
        self._left = 0
        self._reader: Any = None
        try:
            header = file.read(LONGEST_HEADER)
            self._left = self._zstd.get_frame_parameters(header).content_size
            file.seek(0)
            self._reader = self._zstd.ZstdDecompressor(max_window_size=LARGEST_WINDOW).stream_reader(file)
        except self._zstd.ZstdError as error:
            self.damage = str(error)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        if self.damage:
            return 0
        try:
            content = self._reader.read(len(buffer))
        except self._zstd.ZstdError as error:
            self.damage = str(error)
            return 0
        if len(content) > self._left:
            self.damage = "something follows its end"
            content = content[: self._left]
        buffer[: len(content)] = content
        self._left -= len(content)
        if not content and self._left:
            unknown = self._left > LONGEST
            self.damage = "it does not say its length" if unknown else f"{self._left:,} bytes are missing"
        return len(content)


def compress_records(folder: Path) -> tuple[int, int] | None:
    """Put `records.jsonl.zst` in the place of a run's `records.jsonl`; bytes before and after, None where it is done.

    The run must be held, or have no other user. Raises StoreError, and MissingExtraError where zstandard is missing.
    """
    plain, compressed = folder / RECORDS, folder / COMPRESSED
    try:
        if not plain.exists():
            return None
        with open_plain(plain) as file:
            content = file.read()
        compressor = _zstandard().ZstdCompressor(level=LEVEL, write_checksum=True, write_content_size=True)
        write_bytes(compressed, compressor.compress(content), durable=True)
        with compressed.open("rb") as file:
            again = io.BufferedReader(Decompressed(file)).read()
        if again != content:
            compressed.unlink()
            raise StoreError(f"{compressed}: what was written is not what is read; {RECORDS} stays, check the disk")
        plain.unlink()
        return len(content), compressed.stat().st_size
    except OSError as error:
        raise StoreError(
            f"cannot compress the records of {folder}: {error.strerror or error}; {RECORDS} stays; "
            f"make the folder writable, and see that its disk has room"
        ) from error


def restore_records(folder: Path) -> None:
    """Make `records.jsonl` of a compressed file, for appending. Raises StoreError where it is damaged."""
    plain, compressed = folder / RECORDS, folder / COMPRESSED
    if plain.exists() or not compressed.exists():
        return

    def write(to: BinaryIO) -> None:
        with open_plain(compressed) as file:
            content = Decompressed(file)
            shutil.copyfileobj(io.BufferedReader(content), to)
            if content.damage:
                raise StoreError(
                    f"{compressed}: damaged: {content.damage}; restore the file, or move it away: "
                    f"its trials are done again then"
                )

    try:
        write_whole(plain, write, durable=True)
        compressed.unlink()
    except OSError as error:
        raise StoreError(
            f"cannot restore {plain}: {error.strerror or error}; {COMPRESSED} stays; "
            f"make the folder writable, and see that its disk has room"
        ) from error


def _zstandard() -> Any:
    return require("zstandard", "history", "a compressed run (records.jsonl.zst)")
