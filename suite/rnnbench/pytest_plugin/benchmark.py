"""With --benchmark-only: a trial's bound call through pytest-benchmark's own fixture, in a process of its own.

The fixture calls a function and reads a clock before and after. The function here is a call of the bound program in the
trial's worker. The clock advances across it by what that call took there, by the worker's own clock. So the fixture
decides how often to call, and no communication is in a figure. This process imports no framework, and some frameworks
abort where another one is loaded.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing, suppress
from typing import TYPE_CHECKING, Any, cast

import pytest

from rnnbench.measure import PATHS, BlockPlan
from rnnbench.pipeline import not_sampled, record_of
from rnnbench.pytest_plugin.outcome import conclude
from rnnbench.pytest_plugin.trial_test import check_item, context_of
from rnnbench.results import Entry, Record
from rnnbench.sampling import PathBlocks, SamplingWorker, TrialSampling
from rnnbench.stages import RoofReadings
from rnnbench.worker import log_name

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

    def __init__(self, worker: SamplingWorker, sampling: TrialSampling) -> None:
        self._worker = worker
        self._sampling = sampling
        self._blocks = PathBlocks(PATHS["bound"])
        self._seconds: Iterator[float] = iter(())

    def __call__(self) -> None:
        seconds = next(self._seconds, None)
        while seconds is None:
            self._seconds = self._block()
            seconds = next(self._seconds, None)
        CLOCK.advance(seconds)

    def _block(self) -> Iterator[float]:
        block = self._worker.sample(self._sampling, self._blocks, BlockPlan(BLOCK_S))
        if block is None:
            raise SamplingFailedError
        return iter(block.seconds.tolist())


class SamplingFailedError(Exception):
    """The worker died or its program failed while it was timed. `TrialSampling.failure` says how."""


def time_trial(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, benchmark: BenchmarkFixture
) -> None:
    """Build, check and time the trial of this item, and check what the timed calls led to. Raises pytest's outcomes."""
    item = cast("TrialItem", request.node)
    context = context_of(request.config, tmp_path_factory)
    checked = check_item(item, context)
    sampled = not_sampled(checked)
    if sampled.failure is None:
        sampling = TrialSampling(checked.examined)
        with closing(SamplingWorker([sampling], context, log_name(item.trial))) as worker:
            worker.start()
            worker.prepare()
            if sampling.failure is None:
                _time(benchmark, RemoteCall(worker, sampling), record_of(sampled), item.name)
                worker.verify()
        sampled = sampling.sampled(checked, RoofReadings())
    record = record_of(sampled, expected_failures=item.expected_failures)
    if sampled.failure is not None or record.not_believed or record.on_software_device:
        _leave_out(benchmark)
    benchmark.extra_info.update(_extra_info(record))
    conclude(item, sampled, context.folders.logs / log_name(item.trial))


def _time(benchmark: BenchmarkFixture, call: RemoteCall, record: Record, name: str) -> None:
    benchmark.group = f"{Entry(record, None).workload}, chunk {record.params.chunk}"
    benchmark.param, benchmark.params = name, _params(record)
    with suppress(SamplingFailedError):
        benchmark(call)


def _leave_out(benchmark: BenchmarkFixture) -> None:
    """Show no figure of a trial that failed, that is not believed, or of a software device."""
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
        "not_believed": record.not_believed,
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
