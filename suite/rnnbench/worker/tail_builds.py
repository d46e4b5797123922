"""Builds of programs of one step ("tails") in a store that several trials share: which run, and which files they wrote.

A trial builds its program of one step in its check, at the first ragged call. Other workers watch the same store
meanwhile, and must not attribute these files to their own trials.
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
"""Seconds between two looks at running builds."""
_WRITTEN = TypeAdapter(Look)


class TailBuilds:
    """The builds in one store. A build holds a lock while it runs, and then leaves a list of its files.

    The kernel releases the lock if the process dies. The list has the stamp of each file at the end of the build, so a
    file that is written again no longer counts as that build's.
    """

    def __init__(self, store: ProgramStore, programs: str) -> None:
        """`programs` is the folder in the store with the programs of this backend."""
        self._store = store
        self._programs = programs
        self._folder = store.folder / "tails"

    @contextmanager
    def noted(self, trial: Trial) -> Iterator[None]:
        """Record the files that the trial's build of its program of one step writes into its backend's folder.

        Files that another trial of the backend writes there meanwhile are attributed to this build. `check` has a store
        for each worker, and finds such files too.
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
        """The files that changed since `before`, except those that other trials' builds wrote.

        Waits up to `patience_s` seconds for running builds that may have written a changed file.
        """
        until = monotonic() + patience_s
        while True:
            of_others = self._written_by_others(trial)
            changed = self._store.written_since(before).items()
            own_files = (read_cached(self._list(trial.digest), _read) or {}).items()
            theirs = {file for written in of_others.values() for file in (written or {}).items()} - own_files
            # A build may have begun, or ended, since the first look at builds.
            settled = None not in of_others.values() and of_others == self._written_by_others(trial)
            if changed <= own_files | theirs or settled or monotonic() >= until:
                return tuple(sorted(name for name, _ in changed - theirs))
            sleep(PAUSE_S)

    def _written_by_others(self, trial: Trial) -> Mapping[str, Look | None]:
        """The files of each other trial's build; None if the build is running."""
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
