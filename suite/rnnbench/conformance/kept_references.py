"""The cache of reference trajectories: their files are kept for later runs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from rnnbench.backends import machine_facts, package_digest, seen_first, seen_now, suite_digest
from rnnbench.cache import Cache, CacheFolder

BASELINE, PACKAGES = "numpy", ("numpy",)
"""The backend whose sources are those of the suite, and the package that computes trajectories."""
KIND = "references"
"""The kind of the cache's entries. Other kinds are the names of backends."""
SUITE_PACKAGES = ("conformance", "model_files", "rnn")
"""The packages of the suite that decide a trajectory's values."""
LONG_S = 1.0
"""A file whose computation took this long is kept at once. A process may be killed before it writes the others."""


class KeptReferences:
    """Files of trajectories in the cache. A file's key has everything it depends on, the suite and machine included.

    After computing trajectories, call `write` once: it compares the suite's sources for all of them, in some 4 ms.
    """

    def __init__(self, folder: CacheFolder) -> None:
        self._cache = Cache(folder)
        self._waiting: list[tuple[Path, Mapping[str, object]]] = []
        # Read once here, before this process forks others.
        self._seen = seen_first(BASELINE, PACKAGES)
        self._maker = {"sources": suite_digest(SUITE_PACKAGES), "numpy": package_digest("numpy"), **machine_facts()}

    def restore(self, file: Path, key: Mapping[str, object]) -> None:
        """Copy the file into its folder, if it is kept."""
        self._cache.restore(KIND, self._of(file, key), file.parent)

    def keep(self, file: Path, key: Mapping[str, object], seconds: float) -> None:
        """Keep the file at the next call of `write`, or now if its computation took LONG_S or more."""
        self._waiting.append((file, key))
        if seconds >= LONG_S:
            self.write()

    def write(self) -> None:
        """Keep the waiting files, unless the suite or NumPy has changed since this process began."""
        if self._waiting and seen_now(BASELINE, PACKAGES) == self._seen:
            for file, key in self._waiting:
                self._cache.keep(KIND, self._of(file, key), {file.name: file}, {})
        self._waiting.clear()

    def _of(self, file: Path, key: Mapping[str, object]) -> dict[str, object]:
        return {"file": file.name, "key": dict(key), **self._maker}
