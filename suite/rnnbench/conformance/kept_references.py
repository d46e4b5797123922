"""Reference trajectories that earlier runs computed: files that are kept from one run to the next."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from rnnbench.backends import machine_facts, package_digest, rooms_digest, seen_first, seen_now
from rnnbench.cache import Cache, CacheFolder

BASELINE, PACKAGES = "numpy", ("numpy",)
"""The backend that has no sources but the suite's, and the package that computes trajectories."""
KIND = "references"
"""Of the entries, beside those of backends."""
ROOMS = ("conformance", "model_files", "rnn")
"""Rooms of the suite that decide what a trajectory is."""


class KeptReferences:
    """Files of trajectories in the cache. Each is under all that it depends on: `key`, the suite and the machine."""

    def __init__(self, folder: CacheFolder) -> None:
        self._cache = Cache(folder)
        # Read here, once, by a process that then forks others.
        self._seen = seen_first(BASELINE, PACKAGES)
        self._maker = {"sources": rooms_digest(ROOMS), "numpy": package_digest("numpy"), **machine_facts()}

    def restore(self, file: Path, key: Mapping[str, object]) -> None:
        """Put the file into its folder, if it is kept."""
        self._cache.restore(KIND, self._of(file, key), file.parent)

    def keep(self, file: Path, key: Mapping[str, object]) -> None:
        """Not where the suite or NumPy was changed since this process began."""
        if seen_now(BASELINE, PACKAGES) == self._seen:
            self._cache.keep(KIND, self._of(file, key), {file.name: file}, {})

    def _of(self, file: Path, key: Mapping[str, object]) -> dict[str, object]:
        return {"file": file.name, "key": dict(key), **self._maker}
