"""The files that decide which programs a backend makes: its adapter's own, and those of the suite that it builds on."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import rnnbench
from rnnbench.backends.registry import entry_of

SUITE_PACKAGES = ("backends", "model_files", "rnn")
"""Packages of the suite whose code is in programs: a cell, an emitter, a graph that is read. Adapters use each other's.
"""


@cache
def sources_digest(backend: str) -> str:
    """SHA-256 of the names and the bytes of a backend's sources. Raises BackendError where there is no such backend."""
    return digest_of(source_files(backend))


def source_files(backend: str, suite: Path = Path(rnnbench.__file__).parent) -> list[tuple[str, Path]]:
    """The Python files that decide a backend's programs, each with a name that says nothing of where it is installed.

    An adapter of another distribution has the files of its package, or its one module.
    """
    places = [*(suite / package for package in SUITE_PACKAGES), *_adapter_places(backend)]
    return [
        (str(path.relative_to(place.parent)), path)
        for place in places
        for path in (sorted(place.rglob("*.py")) if place.is_dir() else [place])
    ]


def source_places(backend: str) -> list[str]:
    """The folders and modules of the suite and of a backend's adapter. Raises BackendError for an unknown backend."""
    return [str(place) for place in (Path(rnnbench.__file__).parent, *_adapter_places(backend))]


def is_own(backend: str) -> bool:
    """Whether the adapter is the suite's own. Raises BackendError where there is no such backend."""
    return entry_of(backend).module.startswith("rnnbench.")


@cache
def suite_digest(packages: tuple[str, ...] = (".",)) -> str:
    """SHA-256 of the names and the bytes of the sources of some packages of the suite, or of the whole suite."""
    suite = Path(rnnbench.__file__).parent
    return digest_of(
        (str(path.relative_to(suite)), path) for package in packages for path in sorted((suite / package).rglob("*.py"))
    )


def digest_of(files: Iterable[tuple[str, Path]]) -> str:
    """SHA-256 of names and bytes."""
    digest = hashlib.sha256()
    for name, path in files:
        content = path.read_bytes()
        digest.update(f"{name} {len(content)}\n".encode() + content)
    return digest.hexdigest()


def _adapter_places(backend: str) -> list[Path]:
    """The places of an adapter of another distribution. The suite's own adapters are in its packages."""
    return [] if is_own(backend) else _adapter(entry_of(backend).module)


def _adapter(module: str) -> list[Path]:
    """The folders of an adapter's top package, or its file where it is a single module."""
    spec = find_spec(module.partition(".")[0])
    if spec is None:
        return []
    return [Path(place) for place in spec.submodule_search_locations or filter(None, [spec.origin])]
