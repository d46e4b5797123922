"""The files outside of a run's folders that a build reads or writes.

A compiler may have a cache of its own, for example in the user's home folder. A build that reads this cache looks too
cheap, and a build that writes it makes later builds cheap.

Seen are the files that Python opens, and those that the process maps into memory. Not seen are the files that native
code opens and reads, and those of programs that a build starts. Files that imports open do not count, since the seconds
of imports do not count either: Matplotlib, for example, reads a list of fonts in the user's folder.

The audit hook runs within the timed build, 0.2 µs per event: 0.1 ms of the 0.3 s that JAX took for an LSTM, and 11 ms
of the 9 s of `torch.compile`.
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
"""The least bytes of a file that counts. A runtime's settings are smaller, and a program is larger."""
MOST_OPENED = 200_000
"""The most opened files that are noted. Later ones are ignored."""
_SYSTEM_FOLDERS = ("/bin", "/dev", "/etc", "/lib", "/lib64", "/opt", "/proc", "/run", "/sbin", "/sys", "/usr")
_WRITES = os.O_WRONLY | os.O_RDWR


class OutsideFiles:
    """Notes the files that this process opens from now on, except during imports.

    Use it in a process that ends soon: an audit hook cannot be removed.
    """

    def __init__(self, imports: ImportClock) -> None:
        self._opened: list[tuple[Any, int]] = []
        self._mapped = set(_mapped_files())
        opened, most = self._opened, MOST_OPENED

        def note(event: str, given: tuple[Any, ...]) -> None:
            if event == "open" and len(opened) < most and not imports.is_importing:
                opened.append((given[0], given[2]))

        sys.addaudithook(note)

    def seen(self, inside: Iterable[Path]) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The files that were only read, and those that were written.

        Files in the folders `inside`, in those of installed packages and temporary files, and in the system's are left
        out.
        """
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
    """The folders of the system, of installed packages and of temporary files.

    The working folder is on `sys.path` because the worker was started there. It does not count: no package is in it.
    """
    yield from _SYSTEM_FOLDERS
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
