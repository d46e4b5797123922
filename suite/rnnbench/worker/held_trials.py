"""The trials that a worker holds: their references, requests and loaded programs."""

from __future__ import annotations

import os
from pathlib import Path

import psutil

from rnnbench.backends import Program, Request, request_of
from rnnbench.cache import CacheFolder
from rnnbench.cases import Trial
from rnnbench.conformance import KeptReferences, ReferenceTrajectories
from rnnbench.stages import WorkerState
from rnnbench.worker.trial_programs import TrialPrograms


class HeldTrials:
    """Each trial's reference is computed once, and its program loaded once."""

    def __init__(self, programs: TrialPrograms, reference_files: Path, cache: CacheFolder | None = None) -> None:
        self.programs = programs
        self._reference_files = reference_files
        self._kept = None if cache is None else KeptReferences(cache)
        self._references: dict[str, ReferenceTrajectories] = {}

    def program(self, trial: Trial) -> Program:
        request = self.request(trial)
        program = self.programs.load(trial, request)
        self.programs.described(trial, request)
        return program

    def request(self, trial: Trial) -> Request:
        return request_of(trial, self.reference(trial).weights)

    def reference(self, trial: Trial) -> ReferenceTrajectories:
        return self._references.setdefault(trial.id, ReferenceTrajectories(trial, self._reference_files, self._kept))

    def keep_references(self) -> None:
        """Keep the references that were computed since the last call of this method, for later runs."""
        if self._kept is not None:
            self._kept.write()


def worker_state() -> WorkerState:
    """Threads and cores of this process."""
    return WorkerState(psutil.Process().num_threads(), tuple(sorted(os.sched_getaffinity(0))))
