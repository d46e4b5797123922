"""The suite's own account of built programs: the files that each build left, and the bytes that these have.

Adapters write into `ProgramStore.programs`. Beside it, `lists` has a file for each build, with the size and the SHA-256
of all files that appeared or changed while it ran. What is on no list is a leftover of a build that was ended, and what
differs from its list is damaged. Neither is ever loaded. A store has one writer at a time, except for programs of one
step (`worker/tail_builds.py`).
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from pydantic import TypeAdapter

from rnnbench.backends.base import Artifact, Program, Request
from rnnbench.disk import read_cached, write_text
from rnnbench.file_copies import Content, read_content


class Stamp(NamedTuple):
    """What tells cheaply whether a file may have changed."""

    nbytes: int
    modified: int
    inode: int


_LIST = TypeAdapter(dict[str, Content])
Look = Mapping[str, Stamp]
"""The files of a store at one moment, by their path under it."""


def described(program: Program, request: Request, read: Callable[[Path], Content] = read_content) -> Artifact:
    """The program's artifact, with the digest and the size that its files have.

    The digest is of the weights and of the bytes of each file, not of their names or places. Two forms of int8 may have
    the same files, and be told apart by a setting of the runtime: so their name is in it.
    """
    files, form = program.files, request.precision.int8 or ""
    digest = hashlib.sha256((request.weights.digest(request.model) + form).encode())
    for path in files.identity or files.program:
        digest.update(read(path).sha256.encode())
    nbytes = sum(read(path).nbytes for path in files.program)
    return program.artifact.model_copy(update={"digest": digest.hexdigest(), "nbytes": nbytes})


class ProgramStore:
    """Built programs under a folder, for the workers of a run. `key` names a build: a trial's digest."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.programs = folder / "programs"
        self._lists = folder / "lists"
        self._hashed: dict[tuple[str, Stamp], Content] = {}
        """Contents that this process has read. Each file is hashed once."""

    def look(self) -> Look:
        """Folders are listed by hand: a store may have thousands of files, and `Path.rglob` takes six times as long."""
        stamps, folders = dict[str, Stamp](), [""]
        while folders:
            under = folders.pop()
            with suppress(FileNotFoundError), os.scandir(self.programs / under) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        folders.append(f"{under}{entry.name}/")
                    elif (stamp := _stamp_of_file(entry)) is not None:
                        stamps[f"{under}{entry.name}"] = stamp
        return stamps

    def written_since(self, before: Look) -> Look:
        """Files that are there now, and were not or were others before."""
        return {name: stamp for name, stamp in self.look().items() if before.get(name) != stamp}

    def changed_since(self, before: Look) -> tuple[str, ...]:
        """The names of these files, in their order."""
        return tuple(sorted(self.written_since(before)))

    def note(self, key: str, names: Iterable[str], files: Iterable[Path] = ()) -> None:
        """Put files on the list of a build, with those of any other list that has one of `files`.

        A program that an earlier build left has its whole list in this way: the adapter names only the main files.
        """
        changed, named = set(names), {self._name(path) for path in files}
        lists = self._all_lists()
        sharing = [listed for other, listed in lists.items() if other == key or named & set(listed)]
        listed = {name: content for files in sharing for name, content in files.items()}
        new = {name: self._content(name) for name in changed | (named - set(listed))}
        seen = {name: content for name, content in new.items() if content is not None}
        self._write(key, {**listed, **seen})
        for other, contents in lists.items():
            # A build may change a file that it shares with an earlier one, as Inductor's folder has them.
            if other != key and any(contents.get(name, content) != content for name, content in seen.items()):
                self._write(other, {name: seen.get(name, content) for name, content in contents.items()})

    def listed(self, key: str) -> dict[str, Path]:
        """The files on the list of a build, by their path under `programs`."""
        return {name: self.programs / name for name in self._list(key)}

    def has(self, key: str) -> bool:
        """Whether there is a list of that build."""
        return bool(self._list(key))

    def mend(self, key: str) -> tuple[str, ...]:
        """Remove a build whose files are not what its list says. Returns what was wrong; empty where nothing was."""
        wrong = tuple(name for name, content in self._list(key).items() if self._content(name) != content)
        if wrong:
            self._discard(key)
        return wrong

    def clear_for(self, key: str) -> tuple[str, ...]:
        """Before a build: remove all that is damaged, and all that is on no list.

        The build's own files are read whole. Another's are read where their size or time is not that of its list.
        """
        wrong = self.mend(key)
        files, listed_names = dict(self.look()), set[str]()
        for other, listed in self._all_lists().items():
            noted = self._path(other).stat().st_mtime_ns
            suspects = (name for name in listed if not _is_as_noted(files.get(name), listed[name], noted))
            if any(self._content(name) != listed[name] for name in suspects):
                self._discard(other)
                for name in listed:
                    files.pop(name, None)
            else:
                listed_names.update(listed)
        for name in files:
            if name not in listed_names:
                self._remove(name)
        return wrong

    def described(self, program: Program, request: Request) -> Artifact:
        """As `described`, with contents that this process has read before."""
        return described(program, request, lambda path: self._read(self._name(path)))

    def _content(self, name: str) -> Content | None:
        try:
            return self._read(name)
        except FileNotFoundError:
            return None

    def _read(self, name: str) -> Content:
        path = self.programs / name
        stamp = _stamp(path)
        if (name, stamp) not in self._hashed:
            self._hashed[name, stamp] = read_content(path)
        return self._hashed[name, stamp]

    def _name(self, path: Path) -> str:
        return str(path.resolve().relative_to(self.programs.resolve()))

    def _path(self, key: str) -> Path:
        return self._lists / f"{key}.json"

    def _list(self, key: str) -> dict[str, Content]:
        return read_cached(self._path(key), lambda path: _LIST.validate_json(path.read_bytes())) or {}

    def _write(self, key: str, contents: Mapping[str, Content]) -> None:
        write_text(self._path(key), json.dumps(contents, sort_keys=True))

    def _all_lists(self) -> dict[str, dict[str, Content]]:
        return {path.stem: self._list(path.stem) for path in self._lists.glob("*.json")}

    def _discard(self, key: str) -> None:
        for name in self._list(key):
            self._remove(name)
        self._path(key).unlink(missing_ok=True)

    def _remove(self, name: str) -> None:
        """Remove a file, and the folders that are empty without it."""
        path = self.programs / name
        path.unlink(missing_ok=True)
        for folder in path.parents:
            if folder == self.programs or not folder.is_dir() or any(folder.iterdir()):
                return
            folder.rmdir()


def _stamp_of_file(entry: os.DirEntry[str]) -> Stamp | None:
    """None of what is no file, or has gone meanwhile."""
    try:
        return _stamp(entry) if entry.is_file() else None
    except FileNotFoundError:
        return None


def _stamp(file: Path | os.DirEntry[str]) -> Stamp:
    status = file.stat()
    return Stamp(status.st_size, status.st_mtime_ns, status.st_ino)


def _is_as_noted(stamp: Stamp | None, content: Content, noted: int) -> bool:
    """Whether a file has the size on its list, and has not been written since the list was."""
    return stamp is not None and stamp.nbytes == content.nbytes and stamp.modified <= noted
