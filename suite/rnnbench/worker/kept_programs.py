"""Programs that earlier runs built: copied into a run's store before a build, and out of it after a cold one.

The figures of a build go with its program. In a run's folder they stand beside the store, so that a run that is
interrupted and resumed has them too.
"""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from pydantic import TypeAdapter

from rnnbench.backends import ProgramStore, Request, package_digest, program_key, rooms_digest, seen_first, seen_now
from rnnbench.cache import Cache, CacheFolder, Entry
from rnnbench.cases import Trial
from rnnbench.devices import Device
from rnnbench.disk import read_cached, read_plain, write_bytes
from rnnbench.stages import BuildFigures

PROGRAM, TAIL = "program", "program of one step"
"""Parts of what is built for a trial, an entry each: the second one where a ragged rest needed it."""
UNTIMED = "untimed "
"""Begins the name of a part that was built while other work ran. Runs that time their builds do not use it."""
FIGURES, TAIL_SECONDS = "build", "tail_build_s"
"""What the entry of each says of its build."""
_FIGURES, _SECONDS = TypeAdapter(BuildFigures), TypeAdapter(float)


@dataclass(frozen=True)
class CacheUse:
    """The cache of a worker, and what of its environment decides the programs in it."""

    folder: CacheFolder
    versions: dict[str, str]
    """Of its backend's packages, as its adapter tells them."""
    packages: dict[str, str]
    """Digests of these packages, and of NumPy. Empty where the worker reads its own."""
    variables: dict[str, str]
    """Environment variables that the suite and its backend ask for."""
    device: Device | None
    suite: str
    """Digest of all sources of the suite, which decide the results of checks. Empty where the worker reads its own."""
    seen: str = ""
    """What the digests were made of (`backends.seen_first`). Empty where the worker looks itself."""


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
        """Whether the sources and packages are still those of the digests. Otherwise nothing is kept."""
        return seen_now(self._backend, self._package_names) == self._seen

    def look_at_sources(self) -> None:
        """Read what `are_sources_unchanged` reads, once in a process that forks others."""
        seen_first(self._backend, self._package_names)

    def suite_digest(self) -> str:
        """Digest of all sources of the suite."""
        return self._use.suite or rooms_digest()

    def package_digest(self, name: str) -> str:
        """Digest of an installed package."""
        return self._use.packages.get(name) or package_digest(name)

    def restore(self, trial: Trial, request: Request) -> None:
        """Put the program into the store as its build left it, and its program of one step, if they are kept."""
        for kept in ("",) if self._use.folder.times else ("", UNTIMED):
            program = self._restored(trial.digest, request, kept + PROGRAM)
            if program is not None:
                figures = _FIGURES.validate_python(program.facts[FIGURES])
                remember_build(self._artifacts, trial, replace(figures, origin="cached", built=program.made))
                tail = self._restored(later(trial), request, kept + TAIL)
                if tail is not None:
                    _remember_tail(self._artifacts, trial, tail.facts[TAIL_SECONDS])
                return

    def keep(self, trial: Trial, request: Request, figures: BuildFigures) -> None:
        """Keep what a cold build left in the store."""
        self._keep(trial.digest, request, PROGRAM, {FIGURES: asdict(replace(figures, modules=()))})

    def keep_tail(self, trial: Trial, request: Request, seconds: float) -> None:
        """Keep what the build of the program of one step left in the store."""
        _remember_tail(self._artifacts, trial, seconds)
        self._keep(later(trial), request, TAIL, {TAIL_SECONDS: seconds})

    def tail_build_s(self, trial: Trial) -> float | None:
        """The seconds of the build that made the program of one step in the store; None where they are not known."""
        return read_cached(_tail_file(self._artifacts, trial), lambda file: _SECONDS.validate_json(read_plain(file)))

    def key(self, request: Request) -> dict[str, object]:
        """All that decides the request's program."""
        device = self._use.device and asdict(self._use.device)
        packages = {name: (version, self.package_digest(name)) for name, version in self._use.versions.items()}
        return program_key(request, self._sources, packages, self._use.variables, device, self._environment)

    def _keep(self, key: str, request: Request, part: str, facts: dict[str, object]) -> None:
        """What is built now takes the place of what was there, timed or not."""
        if not self.are_sources_unchanged():
            return
        timed, untimed = self._of(request, part), self._of(request, UNTIMED + part)
        of, other = (timed, untimed) if self._use.folder.times else (untimed, timed)
        self.cache.forget(self._backend, other)
        self.cache.keep(self._backend, of, self._store.listed(key), facts)

    def _restored(self, key: str, request: Request, part: str) -> Entry | None:
        entry = self.cache.restore(self._backend, self._of(request, part), self._store.programs)
        if entry is not None:
            self._store.note(key, entry.files)
        return entry

    def _of(self, request: Request, part: str) -> dict[str, object]:
        return {"part": part, **self.key(request)}


def later(trial: Trial) -> str:
    """The key in a store of what a trial's program wrote once it was built."""
    return f"{trial.digest}-later"


def remember_build(artifacts: Path, trial: Trial, figures: BuildFigures) -> None:
    """Keep the figures of a build beside a run's store. Raises OSError."""
    write_bytes(_build_file(artifacts, trial), _FIGURES.dump_json(figures))


def remembered_build(artifacts: Path, trial: Trial) -> BuildFigures | None:
    """The figures of the build that made the program in a run's store; None where they are not known."""
    return read_cached(_build_file(artifacts, trial), lambda file: _FIGURES.validate_json(read_plain(file)))


def _remember_tail(artifacts: Path, trial: Trial, seconds: float) -> None:
    write_bytes(_tail_file(artifacts, trial), _SECONDS.dump_json(seconds))


def _build_file(artifacts: Path, trial: Trial) -> Path:
    return artifacts / f"{trial.digest}.build.json"


def _tail_file(artifacts: Path, trial: Trial) -> Path:
    return artifacts / f"{trial.digest}.tail.json"
