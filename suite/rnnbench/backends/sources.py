"""The files that decide which programs a backend makes: its adapter's own, and those of the suite that it builds on."""

from __future__ import annotations

import hashlib
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import rnnbench
from rnnbench.backends.registry import entry_of

ROOMS = ("backends", "model_files", "rnn")
"""Rooms of the suite whose code is in programs: a cell, an emitter, a graph that is read. Adapters use each other's."""


@cache
def sources_digest(backend: str) -> str:
    """SHA-256 of the names and the bytes of a backend's sources. Raises BackendError where there is no such backend."""
    return digest_of(source_files(backend))


def source_files(backend: str, suite: Path = Path(rnnbench.__file__).parent) -> dict[str, Path]:
    """The Python files that decide a backend's programs, by a name that says nothing of where they are installed.

    Of an adapter of another distribution they are those of its package, or its one module.
    """
    entry = entry_of(backend)
    places = {f"rnnbench.{room}": suite / room for room in ROOMS}
    if not entry.module.startswith("rnnbench."):
        places |= _adapter(entry.module)
    return {
        f"{name}/{path.relative_to(place) if place.is_dir() else ''}": path
        for name, place in places.items()
        for path in (sorted(place.rglob("*.py")) if place.is_dir() else [place])
    }


def digest_of(files: dict[str, Path]) -> str:
    """SHA-256 of names and bytes."""
    digest = hashlib.sha256()
    for name, path in files.items():
        content = path.read_bytes()
        digest.update(f"{name} {len(content)}\n".encode() + content)
    return digest.hexdigest()


def _adapter(module: str) -> dict[str, Path]:
    """The folder of an adapter's top package, or its file where it is a single module."""
    top = module.partition(".")[0]
    spec = find_spec(top)
    if spec is None or spec.origin is None:
        return {}
    origin = Path(spec.origin)
    return {top: origin.parent if spec.submodule_search_locations else origin}
