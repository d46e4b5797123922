"""A seat at the table where trials are sampled in turn: one worker, the trials that it holds, and what they died of."""

from __future__ import annotations

import os
from collections.abc import Mapping

from rnnbench.conformance import TIMED
from rnnbench.measure.sampling import Block
from rnnbench.measure.warmup import WarmUp
from rnnbench.results.record import CheckFigure
from rnnbench.run.account import Account
from rnnbench.run.messages import Failure, read_block
from rnnbench.run.prepare import Findings, first_failure, start_worker
from rnnbench.run.process import WorkerError, WorkerProcess, Workplace
from rnnbench.run.wire import Message


class Seat:
    """One worker with the trials it holds. A trial it dies of is dropped, and a new worker takes the others on."""

    def __init__(self, trials: list[Findings], workplace: Workplace, account: Account, log: str) -> None:
        self.trials = trials
        self._workplace = workplace
        self._account = account
        self._log = log
        self._worker: WorkerProcess | None = None

    def start(self) -> None:
        """Start a worker, without waiting for it."""
        self.close()
        self._worker = start_worker(self.trials[0], self._workplace, self._log)

    def prepare(self) -> None:
        """Load, bind and verify every trial in the worker; in another one those that are left where one kills it.

        What has not been built before is built first, in a child of the worker, while nothing is loaded there: a
        runtime's threads do not come through a fork, and its locks do.
        """
        armed = False
        while self.trials and not armed:
            if self._worker is None:
                self.start()
            assert self._worker is not None
            try:
                with self._account.spent("import"):
                    self._worker.ready()
            except WorkerError as error:
                for findings in self.trials:
                    findings.fail("sample", error.failure)
                self.trials = []
                return
            self._worker.pause()
            for findings in [findings for findings in self.trials if not findings.is_built]:
                findings.is_built = self.ask(findings, "build", "build") is not None
            for findings in list(self.trials):
                reply = self.ask(findings, "arm", "check")
                if reply is not None:
                    _note_verdict(findings, reply)
            armed = self._worker is not None

    def ask(
        self, findings: Findings, do: str, account: str, arguments: Mapping[str, float] | None = None
    ) -> Message | None:
        """The reply, the worker running no longer than it takes; None where the trial has failed and been dropped."""
        if self._worker is None or findings not in self.trials:
            return None
        try:
            self._worker.resume()
            with self._account.spent(account):
                limit = findings.trial.limits.trial
                reply = self._worker.ask(do, findings.trial, limit, arguments=arguments)
            self._worker.pause()
        except WorkerError as error:
            findings.fail("sample", error.failure)
            self.trials.remove(findings)
            if not error.alive:
                self.close()
            return None
        return reply

    def take_turn(self, findings: Findings, do: str, account: str, **how: float) -> Message | None:
        """As `ask`; where the worker died of it, another one takes on the trials that are left."""
        reply = self.ask(findings, do, account, how)
        if reply is None and self._worker is None:
            self.prepare()
        return reply

    def sample(self, findings: Findings, path: str, seconds: float, **how: float) -> Block | None:
        """One block of a latency, or of the state's round trip; None where the trial died of it, or has died before."""
        reply = self.take_turn(findings, f"sample_{path}", "sample", seconds=seconds, **how)
        return None if reply is None else read_block(reply)

    def warm_up(self, findings: Findings, path: str, warmup: WarmUp) -> None:
        """Calls that do not count, until the warm-up is over."""
        while not warmup.is_over:
            window = self.sample(findings, path, warmup.window_s, rewarm=False)
            if window is None:
                return
            warmup.windows.append(window)

    def close(self) -> None:
        if self._worker is not None:
            self._worker.close()
            self._worker = None


def verify(seat: Seat, findings: Findings) -> None:
    """The check that follows sampling, and what the trial's process was seen to have."""
    reply = seat.take_turn(findings, "verify", "check")
    if reply is None:
        return
    _note_verdict(findings, reply)
    for path, steps in reply["grown"].items():
        findings.grown.setdefault(path, []).append([(calls, nbytes) for calls, nbytes in steps])
    seen = {key: reply[key] for key in ("threads_seen", "threads_busy", "affinity")}
    findings.seen = {**seen, "load": os.getloadavg()[0]}


def _note_verdict(findings: Findings, reply: Message) -> None:
    """Keep the worst of the verdicts that a trial's processes gave of its timed path."""
    figure = CheckFigure(**reply["verdict"])
    known = findings.verdicts.get(TIMED)
    if known is None or (known.verdict != "fail" and (figure.verdict == "fail" or _worse(figure, known))):
        findings.verdicts[TIMED] = figure
    if figure.verdict == "fail" and findings.failure is None:
        findings.fail("sample", Failure("nonconforming", first_failure(findings.verdicts)))


def _worse(figure: CheckFigure, known: CheckFigure) -> bool:
    return (figure.rounding or 0.0) > (known.rounding or 0.0)
