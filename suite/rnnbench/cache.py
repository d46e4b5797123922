"""Files that are kept from one run to the next: entries, each under a digest of all that its files depend on.

An entry is a folder with its files and `entry.json`: their sizes and digests, when they were made, what their maker
says of them, and a digest of all that. It is written whole and then renamed, and never changed. Whoever uses it copies
its files, verified, into a folder of its own: so nothing that a run uses is ever removed or damaged here.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import BaseModel, ConfigDict

from rnnbench.content_digest import intact, text_with_digest
from rnnbench.disk import read_cached, read_plain, remove_anything, remove_folder, write_bytes, write_text
from rnnbench.file_copies import Content, DamagedError, copy, copy_verified, read_content
from rnnbench.locks import is_free, locked, locked_folder

FORMAT = 3
"""The format of an entry. An entry of another format is not found."""
ENTRY, FILES = "entry.json", "files"
MAKING = ".making-"
"""Begins the name of an entry that is being written."""
ABANDONED_S = 3600.0
"""Age at which its writer is taken to have been killed on a file system without locks. The largest artifact is written
in seconds. Elsewhere a writer holds the lock of its folder."""
PATIENCE_S = 30.0
"""Seconds after which a run goes on without the cache, whose lock another process holds. It needs the lock for
milliseconds, or seconds for the largest artifact, and may have been stopped."""
SHARE_LEFT = 0.9
"""Share of the bound down to which entries are removed once it is exceeded: not every new entry then removes one."""
_KEYS = "[0-9a-f]" * 32 + "/"
"""The names of entries' folders. What has another name is not the cache's: no entry, and never removed."""


class Entry(BaseModel):
    """`entry.json`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    place: str
    """Its kind and the name of its folder: an entry in another one's place is none."""
    made: str
    """UTC, ISO 8601."""
    of: dict[str, Any]
    """What its key is a digest of, for people who look into the folder."""
    facts: dict[str, Any]
    """What its maker says of it."""
    files: dict[str, Content]
    """By their path."""

    @property
    def nbytes(self) -> int:
        return sum(content.nbytes for content in self.files.values())


@dataclass(frozen=True)
class Use:
    """The entries of one kind, as `rnnbench cache` shows them. Times are seconds since 1970."""

    kind: str
    entries: int
    nbytes: int
    oldest: float
    newest: float


@dataclass(frozen=True)
class CacheFolder:
    """Where the entries are, and how a run uses them. Is passed to workers."""

    path: Path
    bound: int
    """Bytes of all entries above which those that were used longest ago are removed."""
    reads: bool = True
    """False where everything is made afresh. What is made is kept all the same, in the place of what was there."""
    times: bool = True
    """False where other work runs beside the builds, so that their times mean nothing."""


class _EntryFolder(NamedTuple):
    """The folder of an entry. Folders sort by their last use."""

    used: float
    """Seconds since 1970; 0 for an entry that cannot be read."""
    nbytes: int
    path: Path


class Cache:
    """Entries by kind (a backend, or references) and key. Many processes may use one folder at a time."""

    def __init__(self, folder: CacheFolder) -> None:
        self._folder = folder
        self._root = folder.path

    def restore(self, kind: str, of: Mapping[str, Any], into: Path) -> Entry | None:
        """Copy the files of an entry into a folder, each verified. None where there is no such entry.

        There is none either where one of its files is damaged: it is then removed; and where `into` has another file
        under such a name. Files that were copied before that was seen stay in `into`.
        """
        if not self._folder.reads:
            return None
        place = self._place(kind, of)
        try:
            with self._locked(shared=True):
                entry = read_cached(place / ENTRY, _read_entry)
                if entry is None and not place.exists():
                    return None
                if entry is not None and (missing := _missing(entry, into)) is not None:
                    for name in missing:
                        copy_verified(place / FILES / name, into / name, entry.files[name])
                    os.utime(place / ENTRY)
                    return entry
                damaged = entry is None
        except DamagedError:
            damaged = True
        except OSError:
            return None
        if damaged:
            self._remove(place)
        return None

    def keep(self, kind: str, of: Mapping[str, Any], files: Mapping[str, Path], facts: Mapping[str, Any]) -> None:
        """Make an entry of copies of these files, by the names that they are to have. Replaces one of the same key.

        Nothing is kept where it cannot be written, or where it is larger than the bound. The run goes on without it.
        """
        place = self._place(kind, of)
        with suppress(OSError):
            if sum(path.stat().st_size for path in files.values()) > self._folder.bound:
                return
            place.parent.mkdir(parents=True, exist_ok=True)
            with _making(place.parent) as making:
                contents = {name: copy(path, making / FILES / name) for name, path in files.items()}
                now = datetime.now(UTC).isoformat(timespec="seconds")
                entry = Entry(place=_place_of(place), made=now, of=dict(of), facts=dict(facts), files=contents)
                write_bytes(making / ENTRY, text_with_digest(json.dumps(entry.model_dump(mode="json"))))
                with self._locked():
                    remove_anything(place)
                    self._note_growth(entry.nbytes)
                    making.rename(place)

    def find(self, kind: str, of: Mapping[str, Any]) -> Entry | None:
        """An entry that has no files. None where there is no such entry, or a damaged one, which is removed."""
        return self.restore(kind, of, self._root)

    def forget(self, kind: str, of: Mapping[str, Any]) -> None:
        """Remove an entry, if there is one."""
        self._remove(self._place(kind, of))

    def uses(self) -> list[Use]:
        """What there is, by kind."""
        by_kind: dict[str, list[_EntryFolder]] = {}
        for entry in self._entries():
            by_kind.setdefault(entry.path.parent.name, []).append(entry)
        return [
            Use(kind, len(entries), sum(entry.nbytes for entry in entries), min(entries).used, max(entries).used)
            for kind, entries in by_kind.items()
        ]

    def clear(self) -> int:
        """Remove every entry, and what killed writers left. Returns the number of entries. Raises OSError."""
        with self._locked(patience_s=math.inf):
            entries = [entry.path for entry in self._entries()]
            removed = [*entries, *self._being_written()]
            for place in removed:
                remove_anything(place)
            for kind in {place.parent for place in removed}:
                with suppress(OSError):
                    kind.rmdir()
            self._total.unlink(missing_ok=True)
        return len(entries)

    def remove_abandoned(self) -> None:
        """Remove what killed writers left, as far as that is allowed."""
        for left in self._being_written():
            with suppress(OSError):
                if is_free(left) or time.time() - left.stat().st_mtime > ABANDONED_S:
                    remove_folder(left)

    def _note_growth(self, nbytes: int) -> None:
        """Count bytes that come, and remove entries where there are too many. Nobody else counts meanwhile.

        The file with their sum makes it needless to look at every entry each time. Without it they are looked at. It is
        written before they come: where this process is killed in between, the sum is too large, and is counted anew.
        """
        noted = read_cached(self._total, lambda path: int(read_plain(path)))
        total = None if noted is None or noted < 0 else noted + nbytes
        if total is None or total > self._folder.bound:
            total = self._evict(nbytes)
        write_text(self._total, f"{total}\n")

    def _evict(self, coming: int) -> int:
        """Remove what was used longest ago while there is more than the bound, with the bytes that come.

        Returns the bytes that are there then, with them.
        """
        self.remove_abandoned()
        entries = sorted(self._entries())
        total = coming + sum(entry.nbytes for entry in entries)
        if total <= self._folder.bound:
            return total
        for entry in entries:
            if total <= SHARE_LEFT * self._folder.bound:
                break
            remove_folder(entry.path)
            total -= entry.nbytes
        return total

    def _being_written(self) -> list[Path]:
        return [left for kind in self._kinds() for left in kind.glob(f"{MAKING}*") if _is_own(left)]

    def _entries(self) -> Iterator[_EntryFolder]:
        for kind in self._kinds():
            for place in filter(_is_own, kind.glob(_KEYS)):
                entry = read_cached(place / ENTRY, _read_entry)
                used = 0.0
                with suppress(OSError):
                    used = (place / ENTRY).stat().st_mtime
                yield _EntryFolder(used, entry.nbytes, place) if entry else _EntryFolder(0.0, _size_of(place), place)

    def _kinds(self) -> Sequence[Path]:
        return sorted(path for path in self._root.glob("[!.]*") if path.is_dir())

    def _remove(self, place: Path) -> None:
        with suppress(OSError), self._locked():
            remove_anything(place)

    def _place(self, kind: str, of: Mapping[str, Any]) -> Path:
        key = json.dumps([FORMAT, dict(of)], sort_keys=True, default=str)
        return self._root / kind / hashlib.sha256(key.encode()).hexdigest()[:32]

    @property
    def _total(self) -> Path:
        return self._root / ".bytes"

    @contextmanager
    def _locked(self, *, shared: bool = False, patience_s: float = PATIENCE_S) -> Iterator[None]:
        """Shared while an entry is read; alone while entries come to their place or are removed. Raises OSError."""
        with locked(self._root / ".lock", shared=shared, patience_s=patience_s):
            yield


@contextmanager
def _making(kind: Path) -> Iterator[Path]:
    """A folder for an entry that is being written. Raises OSError, also where `remove_abandoned` of another process
    came before the lock."""
    making = Path(tempfile.mkdtemp(prefix=MAKING, dir=kind))
    try:
        with locked_folder(making):
            yield making
    finally:
        remove_folder(making)


def _is_own(place: Path) -> bool:
    """Whether it is a folder, as the cache makes them. A link is not, and may lead to a whole disk."""
    return place.is_dir() and not place.is_symlink()


def _size_of(folder: Path) -> int:
    """Bytes of the files in it, as far as they can be seen."""
    sizes = 0
    for path in folder.rglob("*"):
        with suppress(OSError):
            sizes += path.lstat().st_size if path.is_file() else 0
    return sizes


def _missing(entry: Entry, into: Path) -> Iterable[str] | None:
    """The files that `into` lacks; None where it has another one under the name of any."""
    present = {name for name in entry.files if (into / name).exists()}
    if any(read_content(into / name) != entry.files[name] for name in present):
        return None
    return [name for name in entry.files if name not in present]


def _place_of(folder: Path) -> str:
    return f"{folder.parent.name}/{folder.name}"


def _read_entry(path: Path) -> Entry:
    """Raises OSError and ValueError, also where the entry is not as it was written, or is another one's."""
    entry = Entry.model_validate(json.loads(intact(read_plain(path), required=True)))
    if entry.place != _place_of(path.parent):
        raise ValueError(f"{path} was written in the place {entry.place}")
    return entry
