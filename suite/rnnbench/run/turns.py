"""Trials that are only checked take turns in workers: a framework is imported once, and each trial has a child forked.

The worker itself only imports: its framework, and what the builds of earlier trials had to import. So every child
starts as a fresh worker would that has been through these imports.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable
from threading import Lock

from rnnbench.cases.trial import Trial
from rnnbench.run.prepare import Findings, shared_by
from rnnbench.run.process import WorkerError, WorkerProcess
from rnnbench.run.wire import Message

SLOW = 20
"""Trials that take as long as one on a route whose builds are slow."""


def _cost(findings: Findings) -> int:
    return SLOW if findings.trial.target.route in findings.probe.slow else 1


class Waiting:
    """Trials that wait for a worker, those that may share one together."""

    def __init__(self, findings: Iterable[Findings]) -> None:
        self._lock = Lock()
        self._groups: defaultdict[Hashable, list[Findings]] = defaultdict(list)
        self._served: defaultdict[Hashable, int] = defaultdict(int)
        for found in findings:
            self._groups[shared_by(found)].append(found)

    def next(self, before: Hashable | None) -> Findings | None:
        """The next trial for whoever had one of the group `before`: of the same, or else of one that nobody is at.

        Where somebody is at each, of the one that will take longest.
        """
        with self._lock:
            if before is not None and self._groups.get(before):
                return self._groups[before].pop(0)
            self._served[before] -= 1
            left = [key for key, group in self._groups.items() if group]
            if not left:
                return None
            key = min(left, key=lambda key: (self._served[key], -sum(map(_cost, self._groups[key]))))
            self._served[key] += 1
            return self._groups[key].pop(0)


class Turn:
    """One trial's turn in a worker: what it does happens in a child forked for it."""

    def __init__(self, lender: Lender) -> None:
        self._lender = lender
        self._alive = True

    def ready(self) -> Message:
        return self._guarded(self._lender.fork)

    def ask(self, do: str, trial: Trial, timeout: float, memory: int | None = None) -> Message:
        return self._guarded(lambda: self._lender.worker.ask(do, trial, timeout, memory))

    def close(self) -> None:
        """Let the child go; what is left of a worker that died with it is cleared away."""
        if self._alive:
            try:
                self._lender.end()
            except WorkerError:
                self._alive = False
        if not self._alive:
            self._lender.close()

    def _guarded(self, what: Callable[[], Message]) -> Message:
        try:
            return what()
        except WorkerError as error:
            self._alive = error.alive and self._lender.forked
            raise


class Lender:
    """A worker that gives turns, while it lives."""

    def __init__(self, worker: WorkerProcess) -> None:
        self.worker = worker
        self.closed = False
        self.forked = False
        self._imported: Message | None = None
        self._modules: list[str] = []

    def fork(self) -> Message:
        """Wait for the import, the first time; then fork. Raises WorkerError."""
        self.forked = False
        if self._imported is None:
            self._imported = self.worker.ready()
        self.worker.fork(self._modules)
        self.forked = True
        return self._imported

    def end(self) -> None:
        """Let the child go; the next one need not import what its build did. Raises WorkerError."""
        self._modules = self.worker.end()

    def close(self) -> None:
        if not self.closed:
            self.worker.close()
            self.closed = True
