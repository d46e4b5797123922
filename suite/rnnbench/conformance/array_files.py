"""Arrays by name in files: reference trajectories, which are computed once, and exchanged states."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import numpy as np

from rnnbench.backends import Arrays
from rnnbench.conformance.kept_references import KeptReferences
from rnnbench.disk import any_damage_is_told, open_plain, read_cached, write_whole
from rnnbench.locks import LockHeldError, locked
from rnnbench.measure import STARTED_ON
from rnnbench.rnn import on_cores

NAME = "name of this file"
"""The key under which a file has its own name, and those of its arrays: an archive with a damaged directory may seem to
have fewer. The name of a trajectory has a digest of everything it depends on."""


def save_arrays(path: Path, arrays: Arrays) -> None:
    """Write the file as a whole or not at all. Raises OSError."""
    named = {NAME: np.array([path.name, *arrays]), **arrays}
    write_whole(path, lambda file: np.savez(file, **named))  # type: ignore[arg-type]  # no array is named as its option


def load_arrays(path: Path) -> dict[str, np.ndarray]:
    """Raises OSError or ValueError where the file is damaged, or has another name."""
    with any_damage_is_told(), open_plain(path) as file, np.load(file) as archive:
        arrays = dict(archive)
    if NAME not in arrays:
        raise ValueError(f"{path} has no name of its own")
    if arrays.pop(NAME).tolist() != [path.name, *arrays]:
        raise ValueError(f"{path} was written under another name, or lacks an array")
    return arrays


class ArrayStore:
    """Arrays that are computed once for all trials that need the same, and kept in files under `directory`."""

    def __init__(self, directory: Path, kept: KeptReferences | None, patience_s: float) -> None:
        """`kept` has what earlier runs computed; None if this run computes everything.

        Another process that computes the same is waited for up to `patience_s` seconds: it may have been stopped.
        """
        self.seconds = 0.0
        """Seconds spent on computing arrays that were not in a file."""
        self._directory = directory
        self._kept = kept
        self._patience_s = patience_s
        self._loaded: dict[Path, dict[str, np.ndarray]] = {}

    def get(
        self, name: str, key: Mapping[str, object], compute: Callable[[], dict[str, np.ndarray]]
    ) -> dict[str, np.ndarray]:
        """The arrays of `key`, from its file. If there is none, they are computed and written to it."""
        path = self._directory / f"{name}-{key_digest(key)}.npz"
        if path not in self._loaded:
            arrays = read_cached(path, load_arrays)
            if arrays is None:
                # Another worker that needs the same arrays waits here, and then reads the file.
                with self._alone(path):
                    arrays = read_cached(path, load_arrays) or self._restored(path, key)
                    if arrays is None:
                        arrays = self._compute_and_save(path, key, compute)
            self._loaded[path] = arrays
        return self._loaded[path]

    @contextmanager
    def _alone(self, path: Path) -> Iterator[None]:
        """While no other worker computes these arrays, or after a long wait for one that does."""
        with ExitStack() as held:
            with suppress(LockHeldError):
                held.enter_context(locked(path.with_suffix(".lock"), patience_s=self._patience_s))
            yield

    def _restored(self, path: Path, key: Mapping[str, object]) -> dict[str, np.ndarray] | None:
        if self._kept is None:
            return None
        self._kept.restore(path, key)
        return read_cached(path, load_arrays)

    def _compute_and_save(
        self, path: Path, key: Mapping[str, object], compute: Callable[[], dict[str, np.ndarray]]
    ) -> dict[str, np.ndarray]:
        before = self.seconds
        save_arrays(path, self._timed(compute))
        if self._kept is not None:
            self._kept.keep(path, key, self.seconds - before)
        return load_arrays(path)

    def _timed(self, compute: Callable[[], dict[str, np.ndarray]]) -> dict[str, np.ndarray]:
        start = time.perf_counter()
        try:
            with on_cores(STARTED_ON):
                return compute()
        finally:
            self.seconds += time.perf_counter() - start


def key_digest(key: Mapping[str, object]) -> str:
    """The digest of a key, for the name of its file."""
    return hashlib.sha256(json.dumps(key, sort_keys=True).encode()).hexdigest()[:16]
