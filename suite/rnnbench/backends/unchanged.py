"""Whether what decides programs is still what its digests were made of.

Somebody may edit the suite, or install another version of a package, while a run is on. Workers that start later import
what is there then, and their programs must not be kept under the digests of what was there before.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import cache
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

from rnnbench.backends.package_content import package_digest
from rnnbench.backends.sources import source_places

Facts = tuple[object, ...]
"""A file's path, and what changes with any change of it, also with one that is taken back."""


def seen_first(backend: str, packages: Iterable[str]) -> str:
    """What a process saw of the sources and packages when it first read any digest of theirs."""
    return _digest(backend, packages, _sources_first, _package_first)


def seen_now(backend: str, packages: Iterable[str]) -> str:
    """The same as of now: equal if no file of the sources was touched, and no package was installed since."""
    return _digest(backend, packages, _sources, _package)


class SeenFiles:
    """The files of the suite, of some backends' adapters and of packages, as they are when this is made."""

    def __init__(self, backends: Iterable[str], packages: Iterable[str]) -> None:
        places = {place for backend in backends for place in source_places(backend)}
        self._sources = {place: _sources(place) for place in sorted(places)}
        self._packages = {name: _package_content(name) for name in sorted(set(packages))}

    def changed(self) -> tuple[str, ...]:
        """The names of the packages that are not as they were, also where a file was edited in place.

        A file that is edited and gets its old size and its old time back is not seen.
        """
        sources = [Path(place).stem for place, seen in self._sources.items() if _sources(place) != seen]
        return (*sources, *(name for name, seen in self._packages.items() if _package_content(name) != seen))


def _digest(backend: str, packages: Iterable[str], sources: Callable[[str], str], package: Callable[[str], str]) -> str:
    seen = [*(sources(place) for place in source_places(backend)), *map(package, sorted(packages))]
    return hashlib.sha256("\n".join(seen).encode(errors="surrogateescape")).hexdigest()


def _sources(place: str) -> str:
    """A module, or all Python files in a folder."""
    files = sorted(_python_files(place)) if os.path.isdir(place) else [_facts(place)]
    return repr(files)


def _python_files(folder: str) -> Iterator[Facts]:
    folders = [folder]
    while folders:
        with suppress(OSError), os.scandir(folders.pop()) as entries:
            for entry in entries:
                if entry.name.endswith(".py"):
                    yield _facts(entry.path)
                elif entry.name != "__pycache__" and entry.is_dir():
                    folders.append(entry.path)


def _package(name: str) -> str:
    """Its version and its `RECORD`, which an installation writes. A file that is edited in place is not seen.

    Both are read again only where their files are not those that were read before: of a large package that takes 5 ms.
    """
    try:
        package = distribution(name)
    except PackageNotFoundError:
        return ""
    folder = getattr(package, "_path", None)  # Python has no public name for it.
    if not isinstance(folder, Path):
        return _read_package(name, package)
    files = (name, *(_facts(str(folder / file)) for file in ("METADATA", "RECORD")))
    if files not in _packages:
        _packages[files] = _read_package(name, package)
    return _packages[files]


_packages: dict[Facts, str] = {}
"""What this process, or the one that it was forked from, read in files of packages."""


def _read_package(name: str, package: Distribution) -> str:
    record = package.read_text("RECORD") or ""
    return f"{name} {package.version} {hashlib.sha256(record.encode()).hexdigest()}"


def _facts(path: str) -> Facts:
    try:
        stat = os.stat(path)
    except OSError:
        return (path,)
    return path, stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns, stat.st_ino


_sources_first, _package_first = cache(_sources), cache(_package)
_package_content = package_digest.__wrapped__
"""As of now. A look at each file of a package takes 5 µs."""
