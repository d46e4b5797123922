"""The programs of a worker: building them, verifying their files, loading them, and finding work that adapters hide.

The suite times builds itself and compares the cache before and after each. An adapter's own statement about a build
counts only if it agrees with that.
"""

from __future__ import annotations

import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic, perf_counter
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
from rnnbench.worker.finding_log import FindingLog
from rnnbench.worker.kept_programs import KeptPrograms, later
from rnnbench.worker.outside_files import OutsideFiles
from rnnbench.worker.tail_builds import TailBuilds

TAIL_SHARE = 0.5
"""The least share of the seconds that the suite saw which an adapter must report for the program of one step. The
suite's seconds also contain work that a runtime does once per process."""
TAIL_ROOM_S = 0.1
"""Seconds by which the report may be less than that: TorchScript's first passes over a loaded program take as long."""
LATER_SESSIONS = 2
"""Sessions after the first whose first ragged call is timed too: the program of one step is built by then."""
LONGEST_WAIT_S, SHARE_OF_WAIT = 60.0, 0.5
"""The longest that a trial waits for the tail builds of others: seconds, and a share of the time that it has left.
torch.compile is the slowest, with some 10 s per build."""

Count = Allocated | str | None
"""A runtime's count of allocations, or a sentence if it failed to count, or None if it does not count."""


class TrialPrograms:
    """Programs of one backend in the store of a run's artifacts.

    `folder` is the folder in the store for the backend and its current sources (`folder_of`).
    """

    def __init__(
        self,
        backend: Backend,
        store: ProgramStore,
        folder: str,
        findings: FindingLog,
        kept: KeptPrograms | None = None,
    ) -> None:
        self.findings = findings
        self._backend = backend
        self._store = store
        self._kept = kept
        self._cache = store.programs / folder
        self._tails = TailBuilds(store, folder)
        self._loaded: dict[str, Program] = {}
        self._wrote_later: set[str] = set()
        """Trials whose programs wrote files into the store after their build."""

    def holds(self, trial: Trial) -> bool:
        """Whether the trial's program is loaded in this process."""
        return trial.id in self._loaded

    @property
    def holds_any(self) -> bool:
        """Whether a program is loaded in this process."""
        return bool(self._loaded)

    def allocated(self, trial: Trial, before: Count = None) -> Count:
        """The runtime's count of allocations on the trial's device, since the count `before` if there is one.

        None on the processor. A runtime that fails to count does not make the program fail.
        """
        if trial.device == "cpu" or not isinstance(self._backend, CountsAllocations) or isinstance(before, str):
            return before if isinstance(before, str) else None
        try:
            count = self._backend.allocated(trial.device)
        except AdapterError as error:
            return str(error)
        return count if count is None or before is None else count.since(before)

    def is_intact(self, trial: Trial) -> bool:
        """Whether the trial's program is as its build left it. Otherwise its remaining files are removed."""
        if not self._store.has(trial.digest):
            return False
        wrong = self._store.mend(trial.digest)
        if wrong:
            self._add_finding(f"{listed(wrong, 1)} in the cache: not what the build left there, so it was removed")
        return not wrong

    def begin_build(self, trial: Trial, request: Request) -> Look:
        """Remove damaged and leftover files from the store, and copy the program of an earlier run into it.

        Returns the content of the store before the build.
        """
        self._store.clear_for(trial.digest)
        if self._kept is not None and not self._store.has(trial.digest):
            self._kept.restore(trial, request)
            self._store.clear_for(trial.digest)  # A damaged entry may have left files before its damage was seen.
        return self._store.look()

    def build(self, request: Request) -> Program:
        """Call the adapter's build, and nothing else: this is timed."""
        return self._backend.build(request, self._cache)

    def end_build(self, trial: Trial, request: Request, program: Program, before: Look) -> Literal["cold", "cached"]:
        """`cold` if the build wrote into the cache, `cached` if not. Raises AdapterError."""
        check_program(self._backend.name, program, request, self._cache)
        changed = self._store.changed_since(before)
        if program.cached and changed:
            wrote = listed(changed, 1)
            self._add_finding(f"the build says that it was in the cache, and wrote {wrote} there: it counts as cold")
        elif not program.cached and not changed:
            self._add_finding(
                "the build says that it was not in the cache, and wrote nothing there: it counts as cached"
            )
        self._store.note(trial.digest, changed, (*program.files.program, *program.files.identity))
        return "cold" if changed else "cached"

    def outside_findings(self, files: OutsideFiles, request: Request) -> Iterator[Finding]:
        """Findings about files outside of the run's folders that a build used: they may save it work."""
        inside = [self._store.folder]
        if isinstance(request.model, FileNetwork):
            inside.append(Path(request.model.path).parent)
        read, written = files.seen(inside)
        why = "outside of the run's folders: files there may make a build cheap"
        for did, names in (("read", read), ("wrote", written)):
            if names:
                yield Finding(kind=FindingKind.ARTIFACT, detail=f"the build {did} {listed(names, 1)}, {why}")

    def keep(self, trial: Trial, request: Request, figures: BuildFigures) -> None:
        """Keep the files of a cold build for later runs."""
        if self._kept is not None:
            self._kept.keep(trial, request, figures)

    def forget(self, trial: Trial, request: Request) -> None:
        """Let no later run have the times of this trial's builds."""
        if self._kept is not None:
            self._kept.forget(trial, request)

    def load(self, trial: Trial, request: Request) -> Program:
        """Load the trial's program once. Raises FileNotFoundError if its files have changed since their build."""
        if trial.id not in self._loaded:
            if not self.is_intact(trial):
                raise FileNotFoundError("the program's files changed after they were verified")
            self._loaded[trial.id] = self.build(request)
        return self._loaded[trial.id]

    def described(self, trial: Trial, request: Request) -> Artifact:
        """The artifact of a loaded program, with the digest and size that the suite computed. Raises AdapterError."""
        program = self._loaded[trial.id]
        check_program(self._backend.name, program, request, self._cache)
        return self._store.described(program, request)

    @contextmanager
    def watched(self, trial: Trial, doing: str, seconds: float = 0.0) -> Iterator[None]:
        """Report files that are written into the cache meanwhile, except tail builds and those of other trials.

        `seconds` is the time that the trial has left.
        """
        before, had_tail, begun = self._store.look(), self._has_tail(trial), monotonic()
        yield
        left = seconds - (monotonic() - begun)
        changed = self._tails.without_others(trial, before, min(LONGEST_WAIT_S, left * SHARE_OF_WAIT))
        if changed:
            self._store.note(later(trial), changed)
            self._wrote_later.add(trial.id)
        program = self._loaded.get(trial.id)
        if program is not None and doing == LOADING and not program.cached:
            self._add_finding("a second build does not use what the first one left, and builds again")
        elif changed and not (self._has_tail(trial) and not had_tail):
            self._add_finding(
                f"while it was {doing}, {listed(changed, 1)} was written into the cache: work of the build"
            )

    def time_tail(self, trial: Trial, inputs: Arrays) -> float:
        """Seconds by which the first call of one step takes longer in the first session than in a later one.

        Seconds are the smaller of wall time and processor time for the first session, and the larger for the later
        ones. So neither waiting for a busy machine nor work on many threads adds to the difference.
        """
        with self._tails.noted(trial):
            builds, *opens = [self._time_ragged_call(trial, inputs) for _ in range(1 + LATER_SESSIONS)]
        return max(0.0, min(builds) - min(map(max, opens)))

    def _time_ragged_call(self, trial: Trial, inputs: Arrays) -> tuple[float, float]:
        """Seconds of wall time and of processor time of a new session's first call of one step."""
        session = self._loaded[trial.id].open()
        wall, processor = perf_counter(), _processor_s()
        session.step(inputs)
        spent = perf_counter() - wall, _processor_s() - processor
        session.close()
        return spent

    def tail_build_s(self, trial: Trial, seen: float | None) -> float | None:
        """The seconds that the adapter reports for the program of one step, or those that the suite saw if far more."""
        tail_build_s = self._loaded[trial.id].tail_build_s
        if seen is None or seen * TAIL_SHARE - TAIL_ROOM_S <= (tail_build_s or 0.0):
            return tail_build_s
        what = "nothing" if tail_build_s is None else f"{tail_build_s:.3g} s"
        self._add_finding(
            f"the first ragged call took {seen:.3g} s longer than a later one, and the adapter reported {what} of it"
        )
        return seen

    def keep_tail(self, trial: Trial, request: Request, seconds: float | None) -> float | None:
        """Keep the program of one step for later runs. Returns the seconds of its build, perhaps of an earlier run."""
        if self._kept is None or seconds is None:
            return seconds
        if trial.id not in self._wrote_later:
            return self._kept.tail_build_s(trial) or seconds
        self._kept.keep_tail(trial, request, seconds)
        return seconds

    def _has_tail(self, trial: Trial) -> bool:
        program = self._loaded.get(trial.id)
        return program is not None and program.tail_build_s is not None

    def _add_finding(self, detail: str) -> None:
        self.findings.add([Finding(kind=FindingKind.ARTIFACT, detail=detail)])


LOADING, CHECKING, PREPARING = "loaded", "checked", "prepared for sampling"
"""What is done to a program while the cache is watched."""


def folder_of(backend: str, sources: str) -> str:
    """The folder of a backend's programs in a store. `sources` is the digest of the backend's sources.

    So programs of other sources are not found, and the path of a file shows which backend wrote it.
    """
    return f"{sources[:16]}-{backend}"


def _processor_s() -> float:
    """Processor seconds of this process and of the children that it has waited for."""
    uses = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    return sum(use.ru_utime + use.ru_stime for use in uses)
