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
LONG_S = 1.0
"""Seconds of a computation that is kept at once. A process may be killed before it writes the others."""


class KeptReferences:
    """Files of trajectories in the cache. Each is under all that it depends on: `key`, the suite and the machine.

    Whoever computes trajectories calls `write` at the end: one look at the sources of the suite, which takes some 4 ms,
    is then enough for all of them.
    """

    def __init__(self, folder: CacheFolder) -> None:
        self._cache = Cache(folder)
        self._waiting: list[tuple[Path, Mapping[str, object]]] = []
        # Read here, once, by a process that then forks others.
        self._seen = seen_first(BASELINE, PACKAGES)
        self._maker = {"sources": rooms_digest(ROOMS), "numpy": package_digest("numpy"), **machine_facts()}

    def restore(self, file: Path, key: Mapping[str, object]) -> None:
        """Put the file into its folder, if it is kept."""
        self._cache.restore(KIND, self._of(file, key), file.parent)

    def keep(self, file: Path, key: Mapping[str, object], seconds: float) -> None:
        """Keep the file, whose computation took so many seconds, when `write` is called."""
        self._waiting.append((file, key))
        if seconds >= LONG_S:
            self.write()

    def write(self) -> None:
        """Keep what waits. Not where the suite or NumPy was changed since this process began."""
        if self._waiting and seen_now(BASELINE, PACKAGES) == self._seen:
            for file, key in self._waiting:
                self._cache.keep(KIND, self._of(file, key), {file.name: file}, {})
        self._waiting.clear()

    def _of(self, file: Path, key: Mapping[str, object]) -> dict[str, object]:
        return {"file": file.name, "key": dict(key), **self._maker}
