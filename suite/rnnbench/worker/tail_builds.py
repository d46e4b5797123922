"""Builds of programs of one step in a store, by trials that are checked side by side: which go on, what each wrote.

A trial builds its program of one step in its check, at the first ragged call. Trials of other workers look at the same
store meanwhile, and must not take it for their own work.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from time import monotonic, sleep

from pydantic import TypeAdapter

from rnnbench.backends import Look, ProgramStore
from rnnbench.cases import Trial
from rnnbench.disk import read_cached, read_plain, write_bytes
from rnnbench.locks import locked

PAUSE_S = 0.05
"""Seconds between two looks at builds that go on."""
_WRITTEN = TypeAdapter(Look)


class TailBuilds:
    """Each has a lock while it goes on, which the kernel drops where its process dies, and then a list of its files.

    A list has the stamp that each file had at the end. A file that is written again is no longer that build's.
    """

    def __init__(self, store: ProgramStore, programs: str) -> None:
        """`programs` is the folder in the store that the programs of this backend are in."""
        self._store = store
        self._programs = programs
        self._folder = store.folder / "tails"

    @contextmanager
    def noted(self, trial: Trial) -> Iterator[None]:
        """While the trial builds its program of one step. Only files in its backend's folder can be of that.

        What another trial of the same backend writes there meanwhile is taken for the build's. `check` has a store for
        each worker, and finds that too.
        """
        with locked(self._lock(trial.digest)):
            before = self._store.look()
            try:
                yield
            finally:
                changed = self._store.written_since(before).items()
                written = {name: stamp for name, stamp in changed if name.startswith(f"{self._programs}/")}
                write_bytes(self._list(trial.digest), _WRITTEN.dump_json(written))

    def without_others(self, trial: Trial, before: Look, patience_s: float) -> tuple[str, ...]:
        """Files that changed since `before`, without those that other trials' builds wrote.

        Waits for builds that go on, at most so many seconds, as long as there are files that may be of one.
        """
        until = monotonic() + patience_s
        while True:
            of_others = self._written_by_others(trial)
            changed = self._store.written_since(before).items()
            own = (read_cached(self._list(trial.digest), _read) or {}).items()
            theirs = {file for written in of_others.values() for file in (written or {}).items()} - own
            # A build may have begun, or ended, since the first look at builds.
            settled = None not in of_others.values() and of_others == self._written_by_others(trial)
            if changed <= own | theirs or settled or monotonic() >= until:
                return tuple(sorted(name for name, _ in changed - theirs))
            sleep(PAUSE_S)

    def _written_by_others(self, trial: Trial) -> Mapping[str, Look | None]:
        """What the build of each other trial wrote; None of one that goes on."""
        keys = (path.stem for path in self._folder.glob("*.lock"))
        return {key: self._written(key) for key in keys if key != trial.digest}

    def _written(self, key: str) -> Look | None:
        try:
            with locked(self._lock(key), wait=False, shared=True):
                return read_cached(self._list(key), _read) or {}
        except BlockingIOError:
            return None

    def _lock(self, key: str) -> Path:
        return self._folder / f"{key}.lock"

    def _list(self, key: str) -> Path:
        return self._folder / f"{key}.json"


def _read(path: Path) -> Look:
    return _WRITTEN.validate_json(read_plain(path))
