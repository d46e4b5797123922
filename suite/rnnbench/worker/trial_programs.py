"""The programs of a worker: built, verified against what their builds left, loaded; and what their adapter hid of it.

The suite times builds itself and compares the cache before and after them. What an adapter says of a build counts only
where it agrees with that.
"""

from __future__ import annotations

import resource
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

from rnnbench.backends import (
    AdapterError,
    Allocated,
    Arrays,
    Artifact,
    Backend,
    CountsAllocations,
    Look,
    Program,
    ProgramStore,
    Request,
    check_program,
)
from rnnbench.cases import Trial
from rnnbench.model_files import FileNetwork
from rnnbench.results import Finding, FindingKind
from rnnbench.spelling import listed
from rnnbench.stages import BuildFigures
from rnnbench.worker.kept_programs import KeptPrograms, later
from rnnbench.worker.outside_files import OutsideFiles
from rnnbench.worker.tail_builds import TailBuilds

TAIL_SHARE = 0.5
"""The least share of the suite's own seconds that an adapter may say for the program of one step. The suite's have what
a runtime does once in a process beside the build."""
TAIL_ROOM_S = 0.1
"""Seconds beyond that share that count for nothing: TorchScript's first passes over a loaded program take as long."""
LATER_SESSIONS = 2
"""Sessions whose first ragged call, where the program is built by then, is compared with the one that builds."""
LONGEST_WAIT_S, SHARE_OF_WAIT = 60.0, 0.5
"""The most that a trial waits until others have built their programs of one step: seconds, and a share of the time that
it has left. Those of torch.compile, which are the slowest, take some 10 s each."""

Count = Allocated | str | None


class TrialPrograms:
    """Programs of one backend in a run's store. The folder is that of the run's artifacts.

    `folder` is the one in the store that is the backend's alone, as its sources are now (`folder_of`).
    """

    def __init__(self, backend: Backend, store: ProgramStore, folder: str, kept: KeptPrograms | None = None) -> None:
        self._backend = backend
        self._store = store
        self._kept = kept
        self._cache = store.programs / folder
        self._tails = TailBuilds(store, folder)
        self._loaded: dict[str, Program] = {}
        self._findings: list[Finding] = []
        self._wrote_later: set[str] = set()
        """Trials whose programs wrote files here once they were built."""

    def take_findings(self) -> tuple[Finding, ...]:
        """What was found since the last call of this method."""
        taken, self._findings = tuple(self._findings), []
        return taken

    @property
    def holds_any(self) -> bool:
        """Whether a program is loaded in this process."""
        return bool(self._loaded)

    def allocated(self, trial: Trial, before: Count = None) -> Count:
        """What the runtime counts on the trial's device, since an earlier count if there is one. A sentence where it
        failed to: a program is no worse for that. None on the processor, and where the runtime does not count."""
        if trial.device == "cpu" or not isinstance(self._backend, CountsAllocations) or isinstance(before, str):
            return before if isinstance(before, str) else None
        try:
            count = self._backend.allocated(trial.device)
        except AdapterError as error:
            return str(error)
        return count if count is None or before is None else count.since(before)

    def is_intact(self, trial: Trial) -> bool:
        """Whether the trial's program is as its build left it. Where it is not, what there is of it is removed."""
        if not self._store.has(trial.digest):
            return False
        wrong = self._store.mend(trial.digest)
        if wrong:
            self._find(f"{listed(wrong, 1)} in the cache: not what the build left there, so it was removed")
        return not wrong

    def begin_build(self, trial: Trial, request: Request) -> Look:
        """Remove from the store what is damaged or a leftover, and put into it what an earlier run built.

        Returns what is in it before the build.
        """
        self._store.clear_for(trial.digest)
        if self._kept is not None and not self._store.has(trial.digest):
            self._kept.restore(trial, request)
            self._store.clear_for(trial.digest)  # What a damaged entry had before its damage was seen.
        return self._store.look()

    def build(self, request: Request) -> Program:
        """The adapter's build, and nothing else: this is timed."""
        return self._backend.build(request, self._cache)

    def end_build(self, trial: Trial, request: Request, program: Program, before: Look) -> Literal["cold", "cached"]:
        """Whether the build was a cold one, by what it wrote into the cache. Raises AdapterError."""
        check_program(self._backend.name, program, request, self._cache)
        changed = self._store.changed_since(before)
        if program.cached and changed:
            wrote = listed(changed, 1)
            self._find(f"the build says that it was in the cache, and wrote {wrote} there: it counts as cold")
        elif not program.cached and not changed:
            self._find("the build says that it was not in the cache, and wrote nothing there: it counts as cached")
        self._store.note(trial.digest, changed, (*program.files.program, *program.files.identity))
        return "cold" if changed else "cached"

    def of_outside(self, files: OutsideFiles, request: Request) -> Iterator[Finding]:
        """What a build read or wrote where nobody looks: its seconds may be those of another build's work."""
        inside = [self._store.folder]
        if isinstance(request.model, FileNetwork):
            inside.append(Path(request.model.path).parent)
        read, written = files.seen(inside)
        why = "outside of the run's folders: files there may make a build cheap"
        for did, names in (("read", read), ("wrote", written)):
            if names:
                yield Finding(kind=FindingKind.ARTIFACT, detail=f"the build {did} {listed(names, 1)}, {why}")

    def keep(self, trial: Trial, request: Request, figures: BuildFigures) -> None:
        """Keep what a cold build left, for later runs."""
        if self._kept is not None:
            self._kept.keep(trial, request, figures)

    def load(self, trial: Trial, request: Request) -> Program:
        """The program, as the adapter returns it. Raises FileNotFoundError where its files are not what they were."""
        if trial.id not in self._loaded:
            if not self.is_intact(trial):
                raise FileNotFoundError("the program's files changed after they were verified")
            self._loaded[trial.id] = self.build(request)
        return self._loaded[trial.id]

    def described(self, trial: Trial, request: Request) -> Artifact:
        """The artifact of a program that is loaded, with the suite's own digest and size. Raises AdapterError."""
        program = self._loaded[trial.id]
        check_program(self._backend.name, program, request, self._cache)
        return self._store.described(program, request)

    @contextmanager
    def watched(self, trial: Trial, doing: str, seconds: float = 0.0) -> Iterator[None]:
        """Find what is written into the cache meanwhile. The program of one step may be, and those of other trials.

        `seconds` is the time that the trial has from now on.
        """
        before, had_tail, begun = self._store.look(), self._has_tail(trial), time.monotonic()
        yield
        left = seconds - (time.monotonic() - begun)
        changed = self._tails.without_others(trial, before, min(LONGEST_WAIT_S, left * SHARE_OF_WAIT))
        if changed:
            self._store.note(later(trial), changed)
            self._wrote_later.add(trial.id)
        program = self._loaded.get(trial.id)
        if program is not None and doing == LOADING and not program.cached:
            self._find("a second build does not use what the first one left, and builds again")
        elif changed and not (self._has_tail(trial) and not had_tail):
            self._find(f"while it was {doing}, {listed(changed, 1)} was written into the cache: work of the build")

    def time_tail(self, trial: Trial, inputs: Arrays) -> float:
        """Seconds by which the program's first call of one step is longer than that of a later session.

        They are seconds of work: neither waiting for a busy machine nor the work of many threads makes them more.
        """
        with self._tails.noted(trial):
            builds, *opens = [self._time_ragged_call(trial, inputs) for _ in range(1 + LATER_SESSIONS)]
        return max(0.0, min(builds) - min(map(max, opens)))

    def _time_ragged_call(self, trial: Trial, inputs: Arrays) -> tuple[float, float]:
        """Seconds on the wall, and of the processor's time, of a new session's first call of one step."""
        session = self._loaded[trial.id].open()
        wall, processor = time.perf_counter(), _processor_s()
        session.step(inputs)
        spent = time.perf_counter() - wall, _processor_s() - processor
        session.close()
        return spent

    def tail_build_s(self, trial: Trial, seen: float | None) -> float | None:
        """What the adapter says that the program of one step took; what the suite saw, where that is far more."""
        said = self._loaded[trial.id].tail_build_s
        if seen is None or seen * TAIL_SHARE - TAIL_ROOM_S <= (said or 0.0):
            return said
        what = "nothing" if said is None else f"{said:.3g} s"
        self._find(f"the first ragged call took {seen:.3g} s longer than a later one, and {what} of it was said")
        return seen

    def keep_tail(self, trial: Trial, request: Request, seconds: float | None) -> float | None:
        """Keep the program of one step for later runs. Returns the seconds of its build, which may be an earlier
        run's."""
        if self._kept is None or seconds is None:
            return seconds
        if trial.id not in self._wrote_later:
            return self._kept.tail_build_s(trial) or seconds
        self._kept.keep_tail(trial, request, seconds)
        return seconds

    def _has_tail(self, trial: Trial) -> bool:
        program = self._loaded.get(trial.id)
        return program is not None and program.tail_build_s is not None

    def _find(self, detail: str) -> None:
        self._findings.append(Finding(kind=FindingKind.ARTIFACT, detail=detail))


LOADING, CHECKING, PREPARING = "loaded", "checked", "prepared for sampling"
"""What a program is being while the cache is watched."""


def folder_of(backend: str, sources: str) -> str:
    """Where a backend's programs lie in a store. `sources` is the digest of what decides them.

    So what other sources built is not found, and a file tells whose work it is.
    """
    return f"{sources[:16]}-{backend}"


def _processor_s() -> float:
    """Of this process and of the children that it has waited for."""
    uses = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    return sum(use.ru_utime + use.ru_stime for use in uses)
