"""Conformance alone: trials are built and checked side by side, one to a core; a time taken so would say nothing."""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event, Lock

from rnnbench.cases.trial import Target, Trial
from rnnbench.results import append_record
from rnnbench.results.timing import Timing
from rnnbench.run.account import Account
from rnnbench.run.compose import compose
from rnnbench.run.execute import Observer
from rnnbench.run.plan import known_failures
from rnnbench.run.prepare import Findings, examine, prepare, shared_by, start_worker
from rnnbench.run.process import Workplace
from rnnbench.run.shrink import first_failed
from rnnbench.run.turns import Lender, Turn, Waiting


class Checking:
    """The trials of one `rnnbench check`, under way on some cores at once."""

    def __init__(self, run: Path, account: Account, observer: Observer) -> None:
        self._run = run
        self._workplace = Workplace.of_run(run)
        self._known = known_failures(run)
        self._account = account
        self._observer = observer
        self._journal = Lock()
        self.failing: dict[tuple[Target, str], Findings] = {}
        """The first trial of each target to fail each check first."""
        self._stopped = Event()
        self._lenders: set[Lender] = set()
        self.imports = 0
        """Workers started, each of which has imported a framework."""

    def check(self, trials: Sequence[Trial], jobs: int) -> None:
        """Append each trial's record as it is complete. An interrupt ends the workers, and leaves what is finished."""
        findings = [examine(trial) for trial in trials]
        for found in findings:
            if found.failure is not None:
                self._note(found)
        waiting = Waiting(found for found in findings if found.failure is None)
        cores = sorted(os.sched_getaffinity(0))
        with ThreadPoolExecutor(jobs) as pool:
            try:
                for _ in pool.map(lambda job: self._work(waiting, cores[job % len(cores)]), range(jobs)):
                    continue
            except BaseException:
                self._stopped.set()
                for lender in list(self._lenders):
                    lender.close()
                raise

    def _work(self, waiting: Waiting, core: int) -> None:
        """Take trials for as long as there are any; those that may share a worker one after another."""
        lender, shared = None, None
        try:
            while not self._stopped.is_set() and (found := waiting.next(shared)) is not None:
                if lender is None or lender.closed or shared_by(found) != shared:
                    self._dismiss(lender)
                    lender, shared = self._hire(found, core), shared_by(found)
                for _ in prepare(found, Turn(lender), self._workplace, self._account, self._stage):
                    continue
                self._note(found)
        finally:
            self._dismiss(lender)

    def _hire(self, found: Findings, core: int) -> Lender:
        cores = [core] if found.trial.threads == 1 else None
        lender = Lender(start_worker(found, self._workplace, f"{found.trial.digest}.log", cores))
        self._lenders.add(lender)
        self.imports += 1
        return lender

    def _dismiss(self, lender: Lender | None) -> None:
        if lender is not None:
            lender.close()
            self._lenders.discard(lender)

    def _note(self, found: Findings) -> None:
        with self._journal:
            if not self._stopped.is_set():
                known = self._known.get(found.trial.case, ())
                record = compose(found, known=known).model_copy(update={"timing": Timing()})
                append_record(self._run, record)
                self._observer.finished(record)
                if (check := first_failed(found)) and not record.fails_as_expected:
                    self.failing.setdefault((found.trial.target, check), found)

    def _stage(self, trial: Trial, stage: str) -> None:
        with self._journal:
            self._observer.stage(trial, stage)
