"""Starting a worker for a trial, with the folders, the environment variables and the cores that the trial needs."""

from __future__ import annotations

import os
import sys
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from rnnbench.backends import package_digest, seen_first, sources_digest, suite_digest
from rnnbench.cache import CacheFolder
from rnnbench.cases import Trial
from rnnbench.devices import KINDS
from rnnbench.disk import remove_folder
from rnnbench.stages import Examined, ImportFigures
from rnnbench.worker.commands import Start
from rnnbench.worker.kept_programs import CacheUse
from rnnbench.worker.launcher import Host, WorkerProcess

Holder = TypeVar("Holder")


@dataclass(frozen=True)
class RunFolders:
    """The folders that the workers of a run share."""

    artifacts: Path
    """The programs that compilers build, and the figures of each cold build."""
    references: Path
    """Reference trajectories."""
    logs: Path
    cache: CacheFolder | None = None
    """The cache that later runs read; None if this run makes everything itself."""

    @classmethod
    def of_run(cls, run: Path, cache: CacheFolder | None = None) -> RunFolders:
        return cls(run / "artifacts", run / "references", run / "logs", cache)

    def clear(self) -> None:
        """Remove the artifacts and trajectories of a finished run. They are most of its bytes, and no longer needed."""
        for folder in (self.artifacts, self.references):
            remove_folder(folder)


def start_trial_worker(
    examined: Examined, folders: RunFolders, log: str, cores: Sequence[int] | None = None
) -> WorkerProcess[ImportFigures]:
    """Start a worker for this trial and others with the same `worker_key`. Does not wait until it is ready."""
    trial = examined.trial
    affinity = tuple(cores or worker_cores(trial))
    backend, interpreter = trial.target.backend, examined.support.interpreter
    is_same = interpreter in ("", sys.executable)
    kept = _cache_use(examined, folders.cache, is_same=is_same) if folders.cache else None
    sources = sources_digest(backend) if is_same else ""
    start = Start(backend, folders.artifacts, folders.references, affinity, sources, kept)
    host = Host(folders.logs / log, variables(examined), interpreter)
    return WorkerProcess("rnnbench.worker", start, host)


def _cache_use(examined: Examined, cache: CacheFolder, *, is_same: bool) -> CacheUse:
    """The cache of a worker. Digests are computed here, once for all workers of the suite's interpreter."""
    device, versions = examined.probe.device(examined.trial.device), dict(examined.probe.versions)
    # Read before the digests: an edit after this moment is noticed when a program is kept.
    seen = seen_first(examined.trial.target.backend, (*versions, "numpy")) if is_same else ""
    packages = {name: package_digest(name) for name in (*versions, "numpy")} if is_same else {}
    suite = suite_digest() if is_same else ""
    return CacheUse(cache, versions, packages, variables(examined), device, suite, seen)


def log_name(trial: Trial) -> str:
    """The name of the log file of the worker that builds and checks a trial."""
    return f"{trial.digest}.log"


def variables(examined: Examined) -> dict[str, str]:
    """Environment variables of a trial's worker.

    The reference's own products run on one thread. A backend may set other values for its runtime.
    """
    defaults = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": str(examined.trial.threads)}
    return {**defaults, **examined.support.environment}


def worker_key(examined: Examined) -> Hashable:
    """Trials with the same key can share a worker: same backend, interpreter, device, threads and environment."""
    environment = tuple(sorted(variables(examined).items()))
    trial = examined.trial
    return (trial.target.backend, examined.support.interpreter, trial.device, trial.threads, environment)


def by_worker(trials: Iterable[tuple[Examined, Holder]]) -> list[list[Holder]]:
    """Group the second items by the trials that can share a worker."""
    shared: dict[Hashable, list[Holder]] = {}
    for examined, holder in trials:
        shared.setdefault(worker_key(examined), []).append(holder)
    return list(shared.values())


def worker_cores(trial: Trial) -> tuple[int, ...]:
    """The cores that a trial's worker is bound to while it is timed: one per thread, and some for a device's driver.

    A caller often polls its device. A driver's thread on the same core would then not run until the caller's time slice
    ends, after 3 to 4 ms on Linux.
    """
    return tuple(last_cores(trial.threads + KINDS[trial.device].driver_threads))


def last_cores(count: int) -> list[int]:
    """The last `count` cores of this process: the suite and most interrupts run on the first core."""
    return sorted(os.sched_getaffinity(0))[-count:]
