"""With --benchmark-only: a trial's bound call through pytest-benchmark's own fixture, in a process of its own.

The fixture calls a function and reads a clock before and after. The function here is a call of the bound program in the
trial's worker, and the clock advances across it by just what that call took there, by the worker's own clock. So the
fixture decides how often to call, and keeps and compares what it always does, while nothing of the wire is in a figure;
and frameworks that abort where another one is loaded never meet, since this process imports none.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing
from typing import TYPE_CHECKING, Any, cast

import pytest

from rnnbench.pytest_plugin.check import check, log_of, workplace_of
from rnnbench.pytest_plugin.verdict import conclude
from rnnbench.results.views import Entry
from rnnbench.results.record import Record
from rnnbench.run.account import Account
from rnnbench.run.compose import compose
from rnnbench.run.messages import read_block
from rnnbench.run.prepare import Findings
from rnnbench.run.seat import Seat, verify

if TYPE_CHECKING:
    from pytest_benchmark.fixture import BenchmarkFixture

    from rnnbench.pytest_plugin.item import TrialItem

BLOCK_S = 0.05
"""Seconds that a worker calls its program for at a time: as long as a turn of `rnnbench run`."""


class WorkerClock:
    """This process's clock, but for calls in a worker: across one, it advances by what the worker says that it took."""

    __name__ = "worker_clock"
    """What pytest-benchmark's files call it."""

    def __init__(self) -> None:
        self._ahead = 0.0
        self._shown = 0.0
        self._next: float | None = None

    def __call__(self) -> float:
        """Seconds since some moment."""
        if self._next is None:
            self._shown = time.perf_counter() + self._ahead
        else:
            self._shown, self._next = self._next, None
            self._ahead = self._shown - time.perf_counter()
        return self._shown

    def advance(self, seconds: float) -> None:
        """A call was made in a worker; what this process did meanwhile is not to show."""
        self._next = seconds + (self._shown if self._next is None else self._next)


CLOCK = WorkerClock()
"""One for all trials: pytest-benchmark takes a second to learn the precision of each new one."""


class RemoteCall:
    """The bound call, as a function without arguments. The worker calls in blocks, back to back, as `run` samples."""

    def __init__(self, seat: Seat, findings: Findings) -> None:
        self._seat = seat
        self._findings = findings
        self._seconds: Iterator[float] = iter(())

    def __call__(self) -> None:
        seconds = next(self._seconds, None)
        while seconds is None:
            self._seconds = self._block()
            seconds = next(self._seconds, None)
        CLOCK.advance(seconds)

    def _block(self) -> Iterator[float]:
        reply = self._seat.ask(self._findings, "sample_bound", "sample", {"seconds": BLOCK_S})
        if reply is None:
            raise SamplingFailedError
        return iter(read_block(reply).seconds.tolist())


class SamplingFailedError(Exception):
    """The worker died or its program failed while it was timed; the findings say how."""


def time_trial(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, benchmark: BenchmarkFixture
) -> None:
    """Build, check and time the trial of this item, and check what the timed calls led to. Raises pytest's outcomes."""
    item = cast("TrialItem", request.node)
    workplace = workplace_of(request.config, tmp_path_factory)
    check(item, workplace)
    findings = item.findings
    if findings.failure is None:
        with closing(Seat([findings], workplace, Account(), log_of(item.trial))) as seat:
            seat.prepare()
            if findings.failure is None:
                _time(benchmark, seat, item)
    if findings.failure is not None:
        _leave_out(benchmark)
    benchmark.extra_info.update(_extra_info(compose(findings, known=item.known)))
    conclude(item, workplace.logs / log_of(item.trial))


def _time(benchmark: BenchmarkFixture, seat: Seat, item: TrialItem) -> None:
    record = compose(item.findings, known=item.known)
    benchmark.group = f"{Entry(record, None).workload}, chunk {record.params.chunk}"
    benchmark.param, benchmark.params = item.name, _params(record)
    try:
        benchmark(RemoteCall(seat, item.findings))
    except SamplingFailedError:
        return
    verify(seat, item.findings)


def _leave_out(benchmark: BenchmarkFixture) -> None:
    """No figure of a trial that failed, in tables or files: it may be of a program that computes something else."""
    benchmark.has_error = True
    if benchmark.stats is not None:
        benchmark.stats.stats.data.clear()


def _params(record: Record) -> dict[str, Any]:
    """What --benchmark-group-by=param:NAME may name."""
    rest = {key: value for key, value in record.params.model_dump().items() if key != "model"}
    return {"case": record.case, "backend": record.backend, "route": record.route, **record.params.model, **rest}


def _extra_info(record: Record) -> dict[str, Any]:
    return {
        "trial": record.trial,
        "outcome": record.outcome,
        "version": record.version,
        "rnnbench": record.rnnbench,
        "support": record.support.level,
        "lowered": record.artifact.lowered if record.artifact else None,
        "origin": record.artifact.origin if record.artifact else None,
        "math": record.artifact.math if record.artifact else None,
        "steps_per_call": record.params.chunk,
        "conformance": {name: figure.verdict for name, figure in record.conformance.items()},
        "environment": record.environment.model_dump(),
    }
