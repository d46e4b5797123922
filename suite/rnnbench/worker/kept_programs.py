"""The cache of programs: copied into a run's store before a build, and out of it after a cold build.

The figures of a build are kept with its program. A run's folder has them too, so that a resumed run can read them.
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TypeVar

from pydantic import TypeAdapter, ValidationError

from rnnbench.backends import ProgramStore, Request, package_digest, program_key, seen_first, seen_now, suite_digest
from rnnbench.cache import Cache, CacheFolder
from rnnbench.cases import Trial
from rnnbench.content_digest import intact, line_with_digest
from rnnbench.devices import Device
from rnnbench.disk import read_cached, read_plain, write_bytes
from rnnbench.stages import BuildFigures

PROGRAM, TAIL = "program", "program of one step"
"""The two parts that may be built for a trial. Each has an entry. Only a ragged rest of a workload needs the second."""
UNTIMED = "untimed "
"""Prefix of a part that was built while other work ran. Runs that time their builds do not use it."""
FIGURES, TAIL_SECONDS = "build", "tail_build_s"
"""The facts of an entry: the figures of a program's build, the seconds of the build of a program of one step."""
_FIGURES, _SECONDS, _TAIL = TypeAdapter(BuildFigures), TypeAdapter(dict[str, float]), TypeAdapter(float)
Fact = TypeVar("Fact")


@dataclass(frozen=True)
class CacheUse:
    """The cache of a worker, and the parts of its environment that decide the programs in it.

    The digests and `seen` are empty if the worker has another interpreter than the suite. It then computes its own.
    """

    folder: CacheFolder
    versions: dict[str, str]
    """The versions of the backend's packages, from its adapter."""
    packages: dict[str, str]
    """Digests of these packages and of NumPy."""
    variables: dict[str, str]
    """Environment variables that the suite and the backend set."""
    device: Device | None
    suite: str
    """Digest of all sources of the suite, which decide the results of checks."""
    seen: str = ""
    """The state of the files that the digests were computed from (`backends.seen_first`)."""


class KeptPrograms:
    """The programs of one backend in the cache. It is made before the framework is imported."""

    def __init__(self, use: CacheUse, backend: str, sources: str, artifacts: Path, store: ProgramStore) -> None:
        self._use = use
        self.cache = Cache(use.folder)
        self._backend = backend
        self._sources = sources
        self._artifacts = artifacts
        self._store = store
        self._environment = dict(os.environ)
        self._seen = use.seen or seen_first(backend, self._package_names)

    @property
    def _package_names(self) -> tuple[str, ...]:
        return (*self._use.versions, "numpy")

    def are_sources_unchanged(self) -> bool:
        """Whether the sources and packages still match the digests. Otherwise nothing is kept."""
        return seen_now(self._backend, self._package_names) == self._seen

    def look_at_sources(self) -> None:
        """Read the files of `are_sources_unchanged`. A process that forks others calls this once for all of them."""
        seen_first(self._backend, self._package_names)

    def suite_digest(self) -> str:
        """Digest of all sources of the suite."""
        return self._use.suite or suite_digest()

    def package_digest(self, name: str) -> str:
        """Digest of an installed package."""
        return self._use.packages.get(name) or package_digest(name)

    def restore(self, trial: Trial, request: Request) -> None:
        """Copy the program, and its program of one step, from the cache into the store, if they are kept."""
        for kept in ("",) if self._use.folder.times else ("", UNTIMED):
            program = self._restored(trial.digest, request, kept + PROGRAM, FIGURES, _FIGURES)
            if program is not None:
                made, figures = program
                remember_build(self._artifacts, trial, replace(figures, origin="cached", built=made))
                tail = self._restored(later(trial), request, kept + TAIL, TAIL_SECONDS, _TAIL)
                if tail is not None:
                    _remember_tail(self._artifacts, trial, tail[1])
                return

    def keep(self, trial: Trial, request: Request, figures: BuildFigures) -> None:
        """Keep the files that a cold build left in the store."""
        self._keep(trial.digest, request, PROGRAM, {FIGURES: asdict(replace(figures, modules=()))})

    def forget(self, trial: Trial, request: Request) -> None:
        """Remove what is kept of the trial's builds: their times contain another time."""
        _tail_file(self._artifacts, trial).unlink(missing_ok=True)
        for part in (PROGRAM, TAIL):
            for timed in ("", UNTIMED):
                self.cache.forget(self._backend, self._entry_key(request, timed + part))

    def keep_tail(self, trial: Trial, request: Request, seconds: float) -> None:
        """Keep the files that the build of the program of one step left in the store."""
        _remember_tail(self._artifacts, trial, seconds)
        self._keep(later(trial), request, TAIL, {TAIL_SECONDS: seconds})

    def tail_build_s(self, trial: Trial) -> float | None:
        """The seconds of the build of the program of one step in the store; None if they are not known."""
        file = _tail_file(self._artifacts, trial)
        return read_cached(file, lambda file: _SECONDS.validate_json(intact(read_plain(file)))[TAIL_SECONDS])

    def key(self, request: Request) -> dict[str, object]:
        """Everything that decides the request's program."""
        device = self._use.device and asdict(self._use.device)
        packages = {name: (version, self.package_digest(name)) for name, version in self._use.versions.items()}
        return program_key(request, self._sources, packages, self._use.variables, device, self._environment)

    def _keep(self, key: str, request: Request, part: str, facts: dict[str, object]) -> None:
        """Keep a part. It replaces the entry of an earlier build, timed or untimed."""
        if not self.are_sources_unchanged():
            return
        timed, untimed = self._entry_key(request, part), self._entry_key(request, UNTIMED + part)
        own, other = (timed, untimed) if self._use.folder.times else (untimed, timed)
        self.cache.forget(self._backend, other)
        self.cache.keep(self._backend, own, self._store.listed(key), facts)

    def _restored(
        self, key: str, request: Request, part: str, fact: str, kind: TypeAdapter[Fact]
    ) -> tuple[str, Fact] | None:
        """When a part was made, and a fact of it. None if it is not kept, or has the facts of another rnnbench."""
        entry = self.cache.restore(self._backend, self._entry_key(request, part), self._store.programs)
        if entry is None:
            return None
        try:
            value = kind.validate_python(entry.facts.get(fact))
        except ValidationError:
            return None
        self._store.note(key, entry.files)
        return entry.made, value

    def _entry_key(self, request: Request, part: str) -> dict[str, object]:
        return {"part": part, **self.key(request)}


def later(trial: Trial) -> str:
    """The key in a store of the files that a trial's program wrote after its build."""
    return f"{trial.digest}-later"


def remember_build(artifacts: Path, trial: Trial, figures: BuildFigures) -> None:
    """Write the figures of a build beside a run's store. Raises OSError."""
    write_bytes(_build_file(artifacts, trial), line_with_digest(_FIGURES.dump_json(figures).decode()))


def remembered_build(artifacts: Path, trial: Trial) -> BuildFigures | None:
    """The figures of the build of the program in a run's store; None if they are not known."""
    return read_cached(_build_file(artifacts, trial), lambda file: _FIGURES.validate_json(intact(read_plain(file))))


def _remember_tail(artifacts: Path, trial: Trial, seconds: float) -> None:
    write_bytes(_tail_file(artifacts, trial), line_with_digest(json.dumps({TAIL_SECONDS: seconds})))


def _build_file(artifacts: Path, trial: Trial) -> Path:
    return artifacts / f"{trial.digest}.build.json"


def _tail_file(artifacts: Path, trial: Trial) -> Path:
    return artifacts / f"{trial.digest}.tail.json"
