"""The files outside of a run's folders that a build reads or writes.

A compiler may keep what it made in a store of its own, under the user's folder for example. A build that takes its work
from there looks cheap, and one that leaves it there makes a later build cheap. What Python opens is seen, and what the
process maps into its memory. What native code opens and reads, and what the programs do that a build starts, is not.
Nor does an import count, whose seconds are none of a build: Matplotlib's reads a list of fonts in the user's folder.

The hook is called for every event that Python audits, within the time of the build: 0.2 µs each. In one build of an
LSTM by JAX that was 0.1 ms of 0.3 s, and in one by `torch.compile` 11 ms of 9 s.
"""

from __future__ import annotations

import os
import stat
import sys
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from rnnbench.measure import ImportClock

SMALLEST = 4 << 10
"""Bytes of a file that counts. What a runtime reads of its settings is smaller, and a program is larger."""
MOST_OPENED = 200_000
"""Files opened that are kept: a build that opens more is looked at no further."""
_OF_THE_SYSTEM = ("/bin", "/dev", "/etc", "/lib", "/lib64", "/opt", "/proc", "/run", "/sbin", "/sys", "/usr")
_WRITES = os.O_WRONLY | os.O_RDWR


class OutsideFiles:
    """What is opened from its creation on, but by imports, in a process that ends soon: its hook stays there."""

    def __init__(self, imports: ImportClock) -> None:
        self._opened: list[tuple[Any, int]] = []
        self._mapped = set(_mapped_files())
        opened, most = self._opened, MOST_OPENED

        def note(event: str, given: tuple[Any, ...]) -> None:
            if event == "open" and len(opened) < most and not imports.is_importing:
                opened.append((given[0], given[2]))

        sys.addaudithook(note)

    def seen(self, inside: Iterable[Path]) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Files that were read, and files that were written: those that do not lie in any of these folders, where
        packages are installed, where temporary files are made, or in folders of the system."""
        places = {*map(_real, inside), *map(_real, _usual_places())}
        read, written = set[str](), set[str]()
        for path, flags in [*self._opened, *((path, 0) for path in set(_mapped_files()) - self._mapped)]:
            if isinstance(path, int) or path is None:
                continue
            file = _real(os.fsdecode(path))
            if not _lies_in(file, places) and _is_large(file):
                (written if flags & _WRITES else read).add(file)
        return tuple(sorted(read - written)), tuple(sorted(written))


def _usual_places() -> Iterator[str]:
    """A worker's own folder is on its path because it was started there, and nothing is installed in it."""
    yield from _OF_THE_SYSTEM
    yield from (sys.prefix, sys.base_prefix, sys.exec_prefix, tempfile.gettempdir())
    here = _real(".")
    yield from (place for place in sys.path if place and _real(place) != here)


def _lies_in(file: str, places: Iterable[str]) -> bool:
    return any(file == place or file.startswith(place.rstrip("/") + "/") for place in places)


def _is_large(file: str) -> bool:
    try:
        status = os.stat(file)
    except (OSError, ValueError):
        return False
    return stat.S_ISREG(status.st_mode) and status.st_size >= SMALLEST


def _real(path: str | Path) -> str:
    try:
        return os.path.realpath(path)
    except (OSError, ValueError):
        return os.fspath(path)


def _mapped_files() -> Iterator[str]:
    """Paths of the files that this process maps (proc_pid_maps(5))."""
    try:
        lines = Path("/proc/self/maps").read_bytes().splitlines()
    except OSError:
        return
    for line in lines:
        fields = line.split(maxsplit=5)
        if len(fields) == 6 and fields[5].startswith(b"/"):
            yield os.fsdecode(fields[5])
